package analysis

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/muster-hpc/muster"
)

// Mode is what a launch of the probe measures.
type Mode string

// The modes of the probe.
const (
	Alone Mode = "alone" // every node by itself, all at the same time
	Pairs Mode = "pairs" // nodes with each other, in rounds
	All   Mode = "all"   // the whole cluster at once
	IO    Mode = "io"    // files that all of them share
	Disk  Mode = "disk"  // the scratch of every node by itself, with fio
	Net   Mode = "net"   // TCP and UDP between two nodes, in rounds, with iperf3

	// What is measured over a range, and shown: see Sweeps.

	Sizes   Mode = "sizes"   // nodes with each other, in rounds, by size of the message
	Inside  Mode = "inside"  // the same between two processors of each node
	Scale   Mode = "scale"   // ping-pong and rings, by number of nodes
	Clients Mode = "clients" // one file of many clients, by stages
	Streams Mode = "streams" // TCP by connections, UDP by rate, in rounds, with iperf3
)

// Launches is how often everything is measured. It is decided here, before the
// first figure is known: who stops when an interval looks narrow stops too early,
// and the interval is wrong. Six is the least that gives an interval of a median
// at 95 %.
func Launches(level muster.Validation) int {
	switch level {
	case muster.ValidateQuick:
		return 6
	case muster.ValidateFull:
		return 15
	}
	return 0
}

// budget is how long each metric of a mode may take in one launch.
func budget(level muster.Validation, m Mode) time.Duration {
	quick := map[Mode]time.Duration{Alone: 200 * time.Millisecond, Pairs: 50 * time.Millisecond, All: 100 * time.Millisecond}
	full := map[Mode]time.Duration{Alone: 2 * time.Second, Pairs: 500 * time.Millisecond, All: time.Second, IO: 5 * time.Second, Disk: 2 * time.Second, Net: time.Second}
	if level == muster.ValidateFull {
		return full[m]
	}
	return quick[m]
}

// leastBudget is the shortest time in which a metric says anything, and
// crowdedRounds how many rounds of pairs a launch has where nodes share processors.
const (
	leastBudget   = 10 * time.Millisecond
	crowdedRounds = 2
)

// crowded says what is measured of a mode where nodes share processors: what tells
// most of them.
func crowded(m Mode) (only []string, sizes []int64) {
	switch m {
	case Alone:
		return []string{"dgemm", "stream", "noise"}, nil
	case Pairs:
		return []string{"pair.latency", "pair.bandwidth"}, []int64{8, 2000000}
	}
	return nil, nil
}

// wanted says what is measured of a mode; nothing: all of it.
func wanted(level muster.Validation, m Mode) []string {
	if level == muster.ValidateFull {
		return nil
	}
	return quick(m)
}

// quick says what is measured of a mode where nobody asked for more: all that is
// compared. What is only shown takes a budget of its own.
func quick(m Mode) []string {
	if m == Alone {
		return []string{"dgemm", "stream", "latency", "noise", "core", "mix"}
	}
	return nil
}

// Run is one launch of the probe that is to be made.
type Run struct {
	Mode  Mode
	Nodes []int // numbers in the list that was asked about, in the order of ranks
	// PerNode is how many ranks each node has; 0: one.
	PerNode int
	Rounds  [][]Pair // of mode pairs: by place in Nodes, not by number
	Seed    uint64
	// Budget is how long each metric may take.
	Budget time.Duration
	// Only names what of its mode is measured, and Sizes those of messages; none:
	// all.
	Only  []string
	Sizes []int64
	// Replicate counts launches of the same kind from 0.
	Replicate int
}

// Plan says what is launched, in order, on all nodes of a cluster. Each replicate
// has every mode once, in a random order, and with another assignment of ranks to
// nodes: what drifts during the measurement, and what depends on who comes first,
// does not always meet the same. The same seed gives the same plan.
//
// Crowd is how many of the nodes share a processor, 1 if none do. What so many at
// once show is no figure of a machine, and everything takes as many times longer:
// less is measured, so that a report does not take an hour.
func Plan(places []Place, level muster.Validation, seed uint64, crowd int) []Run {
	crowd = max(1, crowd)
	r := rand.New(rand.NewPCG(seed, uint64(len(places))))
	var runs []Run
	for replicate := range Launches(level) {
		modes := []Mode{Alone}
		if len(places) > 1 {
			modes = append(modes, Pairs, All)
		}
		if level == muster.ValidateFull {
			modes = append(modes, IO, Disk)
			if len(places) > 1 {
				modes = append(modes, Net)
			}
		}
		r.Shuffle(len(modes), func(i, j int) { modes[i], modes[j] = modes[j], modes[i] })
		for _, m := range modes {
			run := Run{Mode: m, Nodes: r.Perm(len(places)), Seed: r.Uint64(), Budget: max(budget(level, m)/time.Duration(crowd), leastBudget), Replicate: replicate}
			run.Only = wanted(level, m)
			if crowd > 1 {
				run.Only, run.Sizes = crowded(m)
			}
			if m == Pairs || m == Net {
				moved := make([]Place, len(places))
				for at, node := range run.Nodes {
					moved[at] = places[node]
				}
				run.Rounds = Rounds(moved, r)
				if crowd > 1 { // they come in a random order: another few each time
					run.Rounds = run.Rounds[:min(len(run.Rounds), crowdedRounds)]
				}
			}
			runs = append(runs, run)
		}
	}
	return runs
}

// confirmed are the modes that suspects are measured in again: all that have figures
// of single nodes.
func confirmed(level muster.Validation) []Mode {
	if level == muster.ValidateFull {
		return []Mode{Alone, Disk}
	}
	return []Mode{Alone}
}

// Confirm says what is launched because some nodes are suspects: they are measured
// by themselves beside as many others as can be had, and with partners that are
// not suspects. It is as often as the first time, in a random order.
func Confirm(places []Place, suspects []int, level muster.Validation, seed uint64) []Run {
	r := rand.New(rand.NewPCG(seed, uint64(len(places))))
	var good []int
	for i := range places {
		if !slices.Contains(suspects, i) {
			good = append(good, i)
		}
	}
	r.Shuffle(len(good), func(i, j int) { good[i], good[j] = good[j], good[i] })
	good = good[:min(len(good), max(confirmBeside, 2*len(suspects)))]
	all := slices.Concat(suspects, good)
	var runs []Run
	for replicate := range Launches(level) {
		for _, m := range confirmed(level) {
			run := Run{Mode: m, Seed: r.Uint64(), Budget: budget(level, m), Only: quick(m), Replicate: replicate}
			for _, at := range r.Perm(len(all)) {
				run.Nodes = append(run.Nodes, all[at])
			}
			runs = append(runs, run)
		}
	}
	return runs
}

// confirmBeside is how many good nodes suspects are measured beside, if there are
// so many: fewer say little of what is normal.
const confirmBeside = 7
