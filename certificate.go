package muster

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// CertificateVersion is the newest form of a certificate that this program
// knows. Fields are only ever added; a change that an older program would
// misread gets a new version.
const CertificateVersion = 1

// CertificateID names a certificate for ever: "pc-" and ten characters.
type CertificateID string

// NewCertificateID makes a fresh certificate ID.
func NewCertificateID() CertificateID { return CertificateID("pc-" + RandomID(10)) }

// Digest is the content of something: "sha256:" and 64 hexadecimal digits.
type Digest string

// CertificateKind says what a certificate is of.
type CertificateKind string

// Kinds of certificates.
const (
	CertifiesNode    CertificateKind = "node"    // one node, on one machine
	CertifiesCluster CertificateKind = "cluster" // the manifest: all nodes, the pairs, the whole
)

// Certificate is what was measured of a node or of a cluster, under which
// conditions, and what follows from it. It is signed by the server (package
// certificate), and whoever has the server's public key can check it.
//
// Units are SI without prefix: s, B/s, flop/s, op/s, and 1 for shares. What is
// not known is left out.
type Certificate struct {
	// Version is the form of this document.
	Version int             `json:"version"`
	ID      CertificateID   `json:"id"`
	Kind    CertificateKind `json:"kind"`
	// Issuer is the server's instance that measured and signed.
	Issuer  string    `json:"issuer,omitempty"`
	Cluster ClusterID `json:"cluster"`
	// ClusterName is what its users call it.
	ClusterName string `json:"cluster_name,omitempty"`
	// Node and Machine are what was measured; only of a node.
	Node    string    `json:"node,omitempty"`
	Machine MachineID `json:"machine,omitempty"`
	// Class is the machine class. A cluster of several classes has none.
	Class string  `json:"class,omitempty"`
	Image ImageID `json:"image"`
	// Began and Ended are when it was measured.
	Began time.Time `json:"began,omitzero"`
	Ended time.Time `json:"ended,omitzero"`
	// Made is when it was signed: it is valid from then until Expires.
	Made    time.Time `json:"made"`
	Expires time.Time `json:"expires"`
	// Supersedes are the certificates that end with this one.
	Supersedes []CertificateID `json:"supersedes,omitempty"`
	// Level is how much was measured.
	Level Validation `json:"level"`
	// Trigger is why it was measured then: delivery, repair, scale, deferred, request, idle.
	Trigger string `json:"trigger,omitempty"`
	// Certified is true if the figures are of hardware that nobody else used.
	// Otherwise this is a report, and Caveats say why.
	Certified bool     `json:"certified"`
	Caveats   []Caveat `json:"caveats,omitempty"`
	// Verdict is what follows from all verdicts below.
	Verdict Grade `json:"verdict"`
	// Schedule is how it was measured, so that it can be measured again.
	Schedule *Schedule `json:"schedule,omitempty"`
	// Conditions are everything that changes a figure. Of a cluster: what all
	// its nodes have in common.
	Conditions TestEnvironment `json:"conditions"`
	Metrics    []Metric        `json:"metrics,omitempty"`
	// Indices sum up families of Metrics; only of a node.
	Indices []Metric `json:"indices,omitempty"`
	// Pairs are the figures between nodes.
	Pairs *Pairs `json:"pairs,omitempty"`
	// Sweeps are what was measured over a range, such as sizes of messages. They are
	// shown, and nobody is judged by them.
	Sweeps   []Sweep   `json:"sweeps,omitempty"`
	Findings []Finding `json:"findings,omitempty"`
	// Omitted is what should have been measured and was not.
	Omitted []Omission `json:"omitted,omitempty"`
	// Use is how busy processors were meanwhile.
	Use []UseSeries `json:"use,omitempty"`
	// Nodes names the certificate of every node; only of a cluster.
	Nodes []CertifiedNode `json:"nodes,omitempty"`
}

// Caveat is one reason why figures are reported and not certified.
type Caveat struct {
	Code string `json:"code"` // oversubscribed, shared, disturbed, pretended, incomplete
	Text string `json:"text"`
}

// Omission is something that was not measured.
type Omission struct {
	What string `json:"what"` // a metric, or a part of the schedule: pairs
	Text string `json:"text"` // why, and whether it will be done later
}

// UseSeries is how busy the processors of a node were while it was measured.
type UseSeries struct {
	Node string `json:"node"`
	// Start is when the first step began, and Step how many seconds each has.
	Start time.Time `json:"start"`
	Step  float64   `json:"step_seconds"`
	// CPU is how many cores were busy, on average over each step.
	CPU []float64 `json:"cpu"`
	// User and System are its parts, and Wait is how many cores waited for input and
	// output. They have as many steps, or are left out where that is not known.
	User   []float64 `json:"user,omitempty"`
	System []float64 `json:"system,omitempty"`
	Wait   []float64 `json:"wait,omitempty"`
}

// CertifiedNode is a node in the manifest of its cluster.
type CertifiedNode struct {
	Node    string    `json:"node"`
	Machine MachineID `json:"machine"`
	// Certificate is the node's certificate, and Digest the SHA-256 of its
	// canonical bytes.
	Certificate CertificateID `json:"certificate"`
	Digest      Digest        `json:"digest"`
	Certified   bool          `json:"certified"`
	Verdict     Grade         `json:"verdict"`
}

// Schedule is how it was measured.
type Schedule struct {
	// Seed orders the launches: the same seed gives the same order again. It is
	// text, because it may be larger than a double can hold.
	Seed string `json:"seed"`
	// Launches are the runs of the probe, in all parts together. A launch is
	// the unit of replication.
	Launches int `json:"launches"`
	// Rounds are how often all nodes were paired.
	Rounds int `json:"rounds,omitempty"`
	// Level is the confidence that intervals were made for, such as 0.95.
	Level float64 `json:"level,omitempty"`
	// FalseFindings bounds the share of findings that are false, or their
	// chance; Control is the procedure that does so over all nodes and metrics
	// together, and Tests how many of them there were.
	FalseFindings float64 `json:"false_findings,omitempty"`
	Control       string  `json:"control,omitempty"`
	Tests         int     `json:"tests,omitempty"`
}

// Pairs are the figures between nodes of a cluster.
type Pairs struct {
	// Measured counts the pairs that were measured, of Possible ones.
	Measured int `json:"measured"`
	Possible int `json:"possible"`
	// Metrics sum them up, by distance and size.
	Metrics []Metric `json:"metrics,omitempty"`
	// Figures are of single pairs.
	Figures []PairFigure `json:"figures,omitempty"`
}

// PairFigure is one median between two nodes.
type PairFigure struct {
	Metric string  `json:"metric"`
	Size   int64   `json:"size_bytes,omitempty"` // of a message, in bytes
	From   string  `json:"from"`
	To     string  `json:"to"`
	Value  float64 `json:"value"` // in the unit of the metric
}

// CaveatDisturbed is the code of the caveat that others used a node's processors
// while it was measured, and of the condition of a machine on which they always do.
const CaveatDisturbed = "disturbed"

// CaveatBusy is the code of the caveat that a program of the node's own users ran
// while it was measured.
const CaveatBusy = "busy"

// Finding is something that the figures say.
type Finding struct {
	// Code names what was found for programs: slow-node, slow-host, slow-link, slow-tier, slow-cluster,
	// unstable, wrong-result, misplaced, conditions-differ.
	Code string `json:"code"`
	Text string `json:"text"`
	// Node is where; with Peer, it is the link between them.
	Node    string    `json:"node,omitempty"`
	Peer    string    `json:"peer,omitempty"`
	Machine MachineID `json:"machine,omitempty"`
	// Distance is the tier, where a whole tier is concerned.
	Distance string `json:"distance,omitempty"`
	Metric   string `json:"metric,omitempty"`
	// Seen and Expected are in the unit of the metric, and Loss is the share
	// that is missing.
	Seen     *float64 `json:"seen,omitempty"`
	Expected *float64 `json:"expected,omitempty"`
	Loss     *float64 `json:"loss,omitempty"`
	// Chance is how likely something like it is seen where nothing is wrong,
	// with all other tests taken into account.
	Chance *float64 `json:"chance,omitempty"`
	// Confirmed: it was seen again, alone and against partners known good.
	Confirmed bool `json:"confirmed"`
	// Cause is what it probably is, in words; empty where nothing tells.
	Cause string `json:"cause,omitempty"`
	// CauseCode names that for programs: cpu-quota, half-link, low-clock,
	// memory-hog, noisy-process, swap, wrong-blas.
	CauseCode string `json:"cause_code,omitempty"`
	// Condition is what differs between nodes, as conditions are called without units
	// (clock.governor for a part of one), and Values what it is where.
	Condition string         `json:"condition,omitempty"`
	Values    []FindingValue `json:"values,omitempty"`
}

// FindingValue is one value of a condition, with the nodes that have it: n[01-03].
type FindingValue struct {
	Value string `json:"value"`
	Nodes string `json:"nodes"`
}

// FindingConditionsDiffer is the code of the finding that the nodes of a cluster do not
// have a condition in common. It is no verdict: it may be meant.
const FindingConditionsDiffer = "conditions-differ"

// FindingMisplaced is the code of the finding that a node measures as one that stands
// elsewhere. It is no verdict on the node.
const FindingMisplaced = "misplaced"

// FindingSlowHost is the code of the finding that a node lacks no more than the others
// on its host: the host is slow, and not the node.
const FindingSlowHost = "slow-host"

// Normal reports whether what the certificate says is what such machines show: nothing in
// it is low, or only because their host was slow. What is left out of a history because
// it was slow makes the next slow hour look like a fault.
func (c Certificate) Normal() bool {
	if c.Verdict != GradeLow {
		return true
	}
	host := map[string]bool{} // what it has to answer for
	named := func(metric string, value float64) string { return fmt.Sprint(metric, " ", value) }
	for _, f := range c.Findings {
		switch {
		case f.Code == FindingSlowHost && f.Seen != nil:
			host[named(f.Metric, *f.Seen)] = true
		case strings.HasPrefix(f.Code, "slow-") || f.Code == "wrong-result":
			return false
		}
	}
	return len(host) > 0 && !slices.ContainsFunc(c.Metrics, func(m Metric) bool {
		return m.Verdict == GradeLow && !host[named(m.Name, m.Median)]
	})
}

// Grade is the verdict on a figure, a node or a cluster.
type Grade string

// Grades.
const (
	GradePass     Grade = "pass"     // as fast as it should be, as far as can be seen
	GradeLow      Grade = "low"      // slower than it should be
	GradeUnstable Grade = "unstable" // it varies too much to be said
	GradeUnknown  Grade = "unknown"  // there is nothing to compare it with
)

// Grades lists all of them, the gravest first.
func Grades() []Grade {
	return []Grade{GradeLow, GradeUnstable, GradePass, GradeUnknown}
}

// Overall is the verdict on the whole of parts: the gravest of theirs. What is
// unknown does not hide what is known.
func Overall(parts ...Grade) Grade {
	for _, v := range Grades() {
		if slices.Contains(parts, v) {
			return v
		}
	}
	return GradeUnknown
}
