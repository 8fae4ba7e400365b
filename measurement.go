package muster

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"
)

// MeasurementPhase is how far a measurement is.
type MeasurementPhase string

// Phases of a measurement.
const (
	MeasurementWanted  MeasurementPhase = "wanted"  // its first launch was not made yet
	MeasurementRunning MeasurementPhase = "running" // launches are being made
	MeasurementDone    MeasurementPhase = "done"    // certificates are signed
	MeasurementFailed  MeasurementPhase = "failed"  // there are none; Reason says why
)

// Open reports whether something is still to be done.
func (p MeasurementPhase) Open() bool { return p == MeasurementWanted || p == MeasurementRunning }

// MeasuresHPL is what is run by a measurement that is not for certificates.
const MeasuresHPL = "hpl"

// FilesBeyondMemory asks for files that do not fit into the memory of the nodes.
const FilesBeyondMemory = -1

// Triggers of a measurement.
const (
	TriggerDelivery = "delivery" // before the cluster is handed over
	TriggerRepair   = "repair"   // before a node takes jobs on another machine
	TriggerScale    = "scale"    // before new nodes take jobs
	TriggerDeferred = "deferred" // what was left out then, when nobody used the nodes
	TriggerRequest  = "request"  // somebody asked
	TriggerIdle     = "idle"     // free machines, in the background
)

// Measurement is the present measurement of a cluster, or its last one. The seed and
// the nodes say what is launched in which order: a server that comes back goes on
// with the launch after Done.
type Measurement struct {
	ID      string     `json:"id"` // ms- and ten characters
	Level   Validation `json:"level"`
	Trigger string     `json:"trigger"`
	// What is run if it is not the probe: hpl, within Budget.
	What   string   `json:"what,omitempty"`
	Budget Duration `json:"budget_seconds,omitempty" doc:"How long it may take"`
	// Files is how many bytes are written to shared files in all; 0: what is usual,
	// FilesBeyondMemory: more than the nodes have memory.
	Files int64  `json:"files_bytes,omitempty"`
	By    string `json:"by,omitempty"` // who asked; "": Muster itself
	// Nodes are measured; none: every compute node.
	Nodes []string `json:"nodes,omitempty"`
	// Partners are those of Nodes that were there before: the others are measured
	// beside them.
	Partners []string `json:"partners,omitempty"`
	// Reserve are nodes that the scheduler gives no jobs to meanwhile.
	Reserve []string `json:"reserve,omitempty"`
	// Of is a digest of the nodes with their attempts: another boot, and what was
	// measured says nothing any more.
	Of    Digest           `json:"of"`
	Seed  uint64           `json:"seed,string"`
	Phase MeasurementPhase `json:"phase"`
	// Launches are planned, of which Done have an outcome; Failed of them have
	// none that counts.
	Launches int `json:"launches,omitempty"`
	Done     int `json:"done,omitempty"`
	Failed   int `json:"failed,omitempty"`
	// Suspects are measured again, beside others that are known to be good.
	Suspects []string `json:"suspects,omitempty"`
	// SuspectLinks are, too: alone, and their ends with partners that are known to
	// be good. Both are decided at once.
	SuspectLinks []NodePair `json:"suspect_links,omitempty"`
	Wanted       time.Time  `json:"wanted"`
	Began        time.Time  `json:"began,omitzero"`
	Ended        time.Time  `json:"ended,omitzero"`
	ETA          time.Time  `json:"eta,omitzero"`
	// Manifest is the certificate of the whole; "" until it is done.
	Manifest CertificateID `json:"manifest,omitempty"`
	Verdict  Grade         `json:"verdict,omitempty"`
	// Result is what HPL showed; "" if it was not run.
	Result HPLID `json:"result,omitempty"`
	// Certified is false of a report: nobody is condemned by one.
	Certified bool `json:"certified,omitempty"`
	// Low are the nodes that were found to be slow, with the reason.
	Low []SlowNode `json:"low,omitempty"`
	// SlowHost reports what its nodes on one host lack together; "" if they do not.
	// Nobody of them is to blame.
	SlowHost string `json:"slow_host,omitempty"`
	// Reason reports why it failed.
	Reason *Error `json:"reason,omitempty"`
}

// Reserved are the nodes that the scheduler is to give no jobs now, because they are
// being measured.
func (m *Measurement) Reserved() []string {
	if m == nil || !m.Phase.Open() {
		return nil
	}
	return m.Reserve
}

// Reserves reports whether a node is one of those.
func (m *Measurement) Reserves(node string) bool { return slices.Contains(m.Reserved(), node) }

// NodePair names two nodes of a cluster.
type NodePair struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// SlowNode is a node that was found to be slower than it should be.
type SlowNode struct {
	Node    string    `json:"node"`
	Machine MachineID `json:"machine"`
	Attempt int64     `json:"attempt"`
	Text    string    `json:"text"`
}

// NewMeasurementID makes a fresh ID of a measurement.
func NewMeasurementID() string { return "ms-" + RandomID(10) }

// DigestOfNodes tells nodes with their attempts from any others. Their order
// counts.
func DigestOfNodes(nodes []Node) Digest {
	h := sha256.New()
	for _, n := range nodes {
		fmt.Fprintf(h, "%s %d %s\n", n.Name, n.Attempt, n.Machine)
	}
	return Digest(fmt.Sprintf("sha256:%x", h.Sum(nil)))
}

// ToMeasure picks the nodes of a cluster that a measurement is of, in index order:
// those that are named, or every compute node that has a machine.
func ToMeasure(nodes []Node, names []string) []Node {
	var list []Node
	for _, n := range nodes {
		switch n.Phase {
		case NodeReady, NodeValidating, NodeUnreachable:
		default:
			continue
		}
		if n.Machine == "" || n.Leave || len(names) == 0 && (n.Role != RoleCompute || n.Hold) || len(names) > 0 && !slices.Contains(names, n.Name) {
			continue
		}
		list = append(list, n)
	}
	slices.SortFunc(list, func(a, b Node) int { return cmp.Compare(a.Index, b.Index) })
	return list
}
