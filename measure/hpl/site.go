package hpl

import (
	"fmt"
	"math"
	"time"

	"github.com/muster-hpc/muster"
)

// Site is what HPL may use.
type Site struct {
	Nodes int
	// Cores, Domains (of memory: NUMA) and Memory (bytes) are those of the
	// smallest node. Domains may be left out.
	Cores   int
	Domains int
	Memory  int64
	// PerCore is about how many flop/s one core does in dgemm. 0: not known.
	PerCore float64
	// Budget is how long all launches may take together.
	Budget time.Duration
	// Share of the memory that may be used; 0 means 80 %. The rest is for the
	// system and the file cache.
	Share float64
	// Start is what a launch takes beside computing; 0 means two seconds.
	Start time.Duration
	// Launches is how often the chosen setting is launched; 0 means six, the
	// least that gives an interval of a median at 95 %.
	Launches int
}

// What a site is where nothing is said.
const (
	defaultShare    = 0.8
	defaultStart    = 2 * time.Second
	defaultLaunches = 6
	shortestBudget  = 30 * time.Second
	longestBudget   = 7 * 24 * time.Hour
	slowCore        = 1e9 // flop/s of a core of which nothing is known
)

// settled fills in what was left out, and refuses what cannot be.
func (s Site) settled() (Site, error) {
	if s.Share == 0 {
		s.Share = defaultShare
	}
	if s.Start == 0 {
		s.Start = defaultStart
	}
	if s.Launches == 0 {
		s.Launches = defaultLaunches
	}
	if s.Domains < 1 || s.Cores%max(1, s.Domains) != 0 {
		s.Domains = 1
	}
	if s.PerCore == 0 {
		s.PerCore = slowCore
	}
	var list []muster.Problem
	when := func(bad bool, field, format string, args ...any) {
		if bad {
			list = append(list, muster.Problem{Field: field, Message: fmt.Sprintf(format, args...)})
		}
	}
	when(s.Nodes < 1 || s.Nodes > 1<<16, "nodes", "must be from 1 to %d", 1<<16)
	when(s.Cores < 1 || s.Cores > 1<<12, "cores", "must be from 1 to %d a node", 1<<12)
	when(s.Memory < 1 || s.Memory > 1<<50, "memory", "must be from 1 B to 1 PiB a node")
	when(!(s.Share > 0 && s.Share <= 0.95), "share", "must be above 0 and at most 0.95 of the memory")
	when(!(s.PerCore > 0) || math.IsInf(s.PerCore, 0), "per_core", "must be a number of flop/s")
	when(s.Budget < shortestBudget || s.Budget > longestBudget, "budget", "must be from %v to %v", shortestBudget, longestBudget)
	when(s.Start < 0 || s.Start > s.Budget/2, "start", "must not be more than half of the budget")
	when(s.Launches < 1 || s.Launches > 1000, "launches", "must be from 1 to 1000")
	if len(list) > 0 {
		e := muster.Errorf(muster.EInvalid, "HPL cannot be planned").WithHint("correct what is named")
		return s, e.Listing(list)
	}
	if n := s.fits(s.settings()[0]); n == 0 {
		return s, muster.Errorf(muster.EInvalid, "%s of memory a node are too little for HPL", bytes(s.allowed())).
			WithHint("use machines with more memory, or allow a larger share of it")
	}
	return s, nil
}

// allowed are the bytes of each node that may be used.
func (s Site) allowed() int64 { return int64(s.Share * float64(s.Memory)) }

func bytes(n int64) string { return fmt.Sprintf("%d MiB", n>>20) }
