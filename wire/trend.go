package wire

import (
	"time"

	"github.com/muster-hpc/muster"
)

// CertificateQuery narrows a list of certificates. Zero values ask for
// everything that the caller may see.
type CertificateQuery struct {
	Cluster string // name or ID
	Node    string
	Machine muster.MachineID
	Class   string
	Kind    muster.CertificateKind
	Present bool // leave out superseded ones
	Since   time.Time
	Page
}

// CertificateList is a list of certificates, newest first.
type CertificateList struct {
	Certificates []CertificateRow `json:"certificates"`
	More
}

// CertificateRow is what a list tells of a certificate.
type CertificateRow struct {
	ID          muster.CertificateID   `json:"id"`
	Kind        muster.CertificateKind `json:"kind"`
	Cluster     muster.ClusterID       `json:"cluster"`
	ClusterName string                 `json:"cluster_name,omitempty"`
	Node        string                 `json:"node,omitempty"`
	Machine     muster.MachineID       `json:"machine,omitempty"`
	Class       string                 `json:"class,omitempty"`
	Level       muster.Validation      `json:"level"`
	Verdict     muster.Grade           `json:"verdict"`
	Certified   bool                   `json:"certified"`
	Made        time.Time              `json:"made"`
	Expires     time.Time              `json:"expires"`
	Digest      muster.Digest          `json:"digest"`
	// SupersededBy took its place.
	SupersededBy muster.CertificateID `json:"superseded_by,omitempty"`
	// KeyCompromised: others may have the key that signed it. It proves nothing.
	KeyCompromised bool `json:"key_compromised,omitempty"`
	// Past: it is of machines that the cluster gave back when it was paused or deleted.
	Past bool `json:"past,omitempty"`
}

// MetricKey distinguishes figures.
type MetricKey struct {
	Name     string `json:"name"`
	Size     int64  `json:"size_bytes,omitempty"` // bytes
	Threads  int    `json:"threads,omitempty"`    // that worked
	Distance string `json:"distance,omitempty"`
}

// Effect is what a difference of conditions does to a comparison.
type Effect string

// Effects.
const (
	EffectStops  Effect = "stops"  // figures are not compared
	EffectWaived Effect = "waived" // they would not be, but this is what the caller compares
	EffectNoted  Effect = "noted"  // they are compared all the same
)

// Difference is a condition that is not alike.
type Difference struct {
	Condition string `json:"condition"` // as certificates call it
	First     string `json:"first"`     // what it is of the first side
	Here      string `json:"here"`      // what it is of this one
	Effect    Effect `json:"effect"`
	// Concerns reports which metrics; empty: all.
	Concerns string `json:"concerns,omitempty"`
}

// CompareQuery asks for a comparison.
type CompareQuery struct {
	// Of are clusters, machines, classes and certificates: the first is what the
	// others are compared with.
	Of []string
	// Across names the conditions whose difference is what is compared.
	Across []string
	// Metric narrows the metrics: a name, or the beginning of names before a dot.
	Metric string
}

// Comparison is how the others stand against the first.
type Comparison struct {
	Sides []ComparedSide `json:"sides"`
	// Unit is what counts as one replication: launch, or machine where classes are
	// compared.
	Unit    string           `json:"unit"`
	Metrics []ComparedMetric `json:"metrics"`
	// Level is the confidence of each interval by itself.
	Level float64 `json:"level"`
	// FalseFindings is the share of better and worse that may be chance, Control
	// the procedure that keeps to it, and Tests how many tests it is over.
	FalseFindings float64 `json:"false_findings"`
	Control       string  `json:"control"`
	Tests         int     `json:"tests"`
	// Worth is the smallest difference that is told, as a share.
	Worth float64 `json:"worth"`
}

// ComparedSide is one of those compared.
type ComparedSide struct {
	Name    string           `json:"name"` // as it was asked for
	Kind    string           `json:"kind"` // cluster, machine, class, certificate
	Cluster muster.ClusterID `json:"cluster,omitempty"`
	Machine muster.MachineID `json:"machine,omitempty"`
	Class   string           `json:"class,omitempty"`
	Image   muster.ImageID   `json:"image,omitempty"`
	Nodes   int              `json:"nodes"`
	Made    time.Time        `json:"made"` // of the newest certificate
	// Certified: all figures are. Otherwise Caveats are the codes of what speaks
	// against it.
	Certified bool     `json:"certified"`
	Caveats   []string `json:"caveats,omitempty"`
	// Certificates are those that the figures are from; not of a class.
	Certificates []muster.CertificateID `json:"certificates,omitempty"`
	// Differ are the conditions that are not those of the first.
	Differ []Difference `json:"differ,omitempty"`
	// Missing counts the metrics that only this side or only the first has.
	Missing int `json:"missing,omitempty"`
}

// Verdicts of a comparison.
const (
	Better            = "better"
	Worse             = "worse"
	Indistinguishable = "indistinguishable"
	NotComparable     = "not-comparable"
)

// ComparedMetric is one figure of one side against the first.
type ComparedMetric struct {
	MetricKey
	Unit  string         `json:"unit"`
	Less  bool           `json:"less_is_better,omitempty"`
	Side  int            `json:"side"` // in sides, from 1
	First ComparedFigure `json:"first"`
	Here  ComparedFigure `json:"here"`
	// Ratio is by how much what is here is above the first, with its interval: left
	// out where a figure is zero, or where there are too few launches for one.
	Ratio    *float64         `json:"ratio,omitempty"`
	Interval *muster.Interval `json:"interval,omitempty"`
	// Chance is that of ranks as different as these if nothing differs, by itself,
	// and Adjusted with all tests taken into account.
	Chance   *float64 `json:"chance,omitempty"`
	Adjusted *float64 `json:"adjusted,omitempty"`
	// Detectable is the smallest difference that would be seen in nine of ten
	// cases, as a share; left out where there are too few launches to see any.
	Detectable *float64 `json:"detectable,omitempty"`
	Verdict    string   `json:"verdict"`          // better, worse, indistinguishable, not-comparable
	Reason     string   `json:"reason,omitempty"` // of not-comparable, and of too few launches
}

// ComparedFigure is what one side shows.
type ComparedFigure struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	// Count is how many replications it is the median of.
	Count int `json:"count"`
}

// HistoryQuery asks how figures went over time.
type HistoryQuery struct {
	Of     string // a cluster, a machine or a class
	Metric string // as in CompareQuery
	Since  time.Duration
}

// History is how the figures of a cluster, a machine or a class went over time.
type History struct {
	Of   string `json:"of"`
	Kind string `json:"kind"` // cluster, machine, class
	// Measurements are when something was measured, oldest first.
	Measurements []Measured      `json:"measurements"`
	Metrics      []MetricHistory `json:"metrics"`
	// Events are changes of conditions between measurements.
	Events []ConditionChange `json:"events"`
	// Region is the chance of Expected and Next; FalseChanges the chance of a
	// change where none was, for each metric.
	Region       float64 `json:"region"`
	FalseChanges float64 `json:"false_changes"`
	// HPL is what muster bench hpl showed meanwhile. Nil: it did not run, or another metric was asked for.
	HPL *HPLHistory `json:"hpl,omitempty"`
	// Older: there were more measurements before, which are not told.
	Older bool `json:"older,omitempty"`
}

// Measured is one measurement.
type Measured struct {
	At time.Time `json:"at"`
	// Certificate tells all of it; of a class it is left out.
	Certificate muster.CertificateID `json:"certificate,omitempty"`
	Trigger     string               `json:"trigger,omitempty"`
	Level       muster.Validation    `json:"level"`
	Certified   bool                 `json:"certified"`
	Verdict     muster.Grade         `json:"verdict"`
	Nodes       int                  `json:"nodes"`
}

// ConditionChange is a condition that was another one before.
type ConditionChange struct {
	At        time.Time `json:"at"` // of the first measurement with the new one
	Condition string    `json:"condition"`
	From      string    `json:"from"`
	To        string    `json:"to"`
	// Breaks: figures before and after are not compared.
	Breaks bool `json:"breaks,omitempty"`
}

// MetricHistory is how one figure went over time.
type MetricHistory struct {
	MetricKey
	Unit   string        `json:"unit"`
	Less   bool          `json:"less_is_better,omitempty"`
	Points []MetricPoint `json:"points"`
	// Used is how many of the points, up to the newest, what follows is made from.
	Used int `json:"used"`
	// Median is over the medians, Min and Max over the extremes of those used.
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	// Expected is where the newest was expected to be, from those before it since
	// the last change; Outside means that it is not, by more than chance among all
	// metrics explains, which Chance is.
	Expected *muster.Interval `json:"expected,omitempty"`
	Outside  bool             `json:"outside,omitempty"`
	Chance   *float64         `json:"chance,omitempty"`
	// With are the other metrics that were outside, too.
	With []MetricKey `json:"with,omitempty"`
	// Next is where the next one is expected to be.
	Next *muster.Interval `json:"next,omitempty"`
	// Detectable is the smallest loss of the newest that would have been seen in
	// nine of ten cases, as a share.
	Detectable *float64       `json:"detectable,omitempty"`
	Changes    []MetricChange `json:"changes,omitempty"`
	// Between is how much machines differ; only of a class.
	Between *ClassFigure `json:"between,omitempty"`
}

// MetricPoint is a figure in one measurement.
type MetricPoint struct {
	Measurement int     `json:"measurement"` // in measurements, from 0
	Median      float64 `json:"median"`
	Min         float64 `json:"min"`
	Max         float64 `json:"max"`
	Nodes       int     `json:"nodes"` // of which it is the median
}

// MetricChange is a place at which a level changed.
type MetricChange struct {
	Measurement int       `json:"measurement"` // the first after it
	At          time.Time `json:"at"`
	Before      float64   `json:"before"`
	After       float64   `json:"after"`
	Chance      float64   `json:"chance"`
	// With are the other metrics that changed then, and Events the conditions.
	With   []MetricKey       `json:"with,omitempty"`
	Events []ConditionChange `json:"events,omitempty"`
}

// ClassFigure is what machines of a class show.
type ClassFigure struct {
	Median float64 `json:"median"`
	// Spread is what figures of single machines differ by, as a share.
	Spread       float64 `json:"spread"`
	Machines     int     `json:"machines"`
	Certificates int     `json:"certificates"`
}
