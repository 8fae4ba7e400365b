package muster

import (
	"fmt"
	"regexp"
	"time"
)

// HPLID names a stored result of HPL for ever: "hr-" and ten characters.
type HPLID string

// NewHPLID makes a fresh ID of a result.
func NewHPLID() HPLID { return HPLID("hr-" + RandomID(10)) }

var hplID = regexp.MustCompile(`^hr-[0-9a-z]{10}$`)

// Valid reports whether the ID has the form of one.
func (id HPLID) Valid() bool { return hplID.MatchString(string(id)) }

// HPLVersion is the form of a stored result of HPL.
const HPLVersion = 1

// HPLResult is what the High-Performance Linpack benchmark showed of a cluster.
// Rates are flop/s, counted as HPL does: two thirds of the cube of N and a little.
type HPLResult struct {
	Version     int       `json:"version"`
	ID          HPLID     `json:"id"`
	Cluster     ClusterID `json:"cluster"`
	ClusterName string    `json:"cluster_name,omitempty"`
	// Class is the machine class; empty where the nodes are of several.
	Class string `json:"class,omitempty"`
	// Nodes took part.
	Nodes []string `json:"nodes"`
	// Cores of all nodes together.
	Cores int `json:"cores"`
	// Began is the first launch, Made the end of the last.
	Began time.Time `json:"began,omitzero"`
	Made  time.Time `json:"made"`
	// Caveats say why the figure is of less than the hardware; none: it had the
	// hardware for itself.
	Caveats []Caveat `json:"caveats,omitempty"`
	// Conditions are what all nodes have in common.
	Conditions TestEnvironment `json:"conditions"`
	// Setting is how the launches behind Rate ran.
	Setting HPLSetting `json:"setting"`
	// Rate is the figure: the median over launches of one setting, with its
	// interval and extremes, and the theoretical peak as its reference.
	Rate Metric `json:"rate"`
	// PerCore is the median by core, OfPeak its share of the peak.
	PerCore float64  `json:"flop_per_second_per_core"`
	OfPeak  *float64 `json:"of_peak,omitempty"`
	// Best is the fastest launch of all. It shows what is possible; other sites'
	// figures are mostly such.
	Best HPLRun `json:"best"`
	// Runs are all launches in order, also those that only chose the setting.
	Runs []HPLRun `json:"runs"`
	// Use is how busy processors were meanwhile: of each node, or of many nodes the mean,
	// under the names of all.
	Use []UseSeries `json:"use,omitempty"`
}

// HPLSetting is what HPL was asked to do.
type HPLSetting struct {
	N  int `json:"n"`  // order of the matrix
	NB int `json:"nb"` // width of its blocks
	P  int `json:"p"`  // rows of ranks
	Q  int `json:"q"`  // columns of ranks
	// PerNode ranks were on each node, with so many Threads each.
	PerNode int `json:"per_node"`
	Threads int `json:"threads"`
}

// HPLRun is one launch.
type HPLRun struct {
	HPLSetting
	// Part is what it was for: first, split, grid, block, figure.
	Part string `json:"part"`
	// Rate is in flop/s; nothing where the launch failed, and Problem says how.
	Rate float64 `json:"flop_per_second,omitempty"`
	// Seconds is the time that HPL counted, Took the whole launch with start, the
	// making of the matrix and the check.
	Seconds float64 `json:"seconds,omitempty"`
	Took    float64 `json:"took_seconds,omitempty"`
	// Residual is the scaled residual of the check, which must be below 16.
	Residual float64 `json:"residual,omitempty"`
	Problem  string  `json:"problem,omitempty"`
}

// HPLText is a result in one line: "61.3 Gflop/s on 2 nodes with 2 cores".
func HPLText(r HPLResult) string {
	return fmt.Sprintf("%.4g Gflop/s on %s with %s", r.Rate.Median/1e9, counted(len(r.Nodes), "node"), counted(r.Cores, "core"))
}

// counted is a number of things: 1 node, 2 nodes.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
