package converge

import (
	"slices"
	"time"

	"github.com/muster-hpc/muster"
)

// Limits are the times and counts by which Decide judges. Zero fields take the
// value of DefaultLimits.
type Limits struct {
	Boot         time.Duration // from power on until the agent joins, without history
	Configure    time.Duration // from joining until ready, without history
	Scheduler    time.Duration // from the last node's readiness until the scheduler shows all
	Prepare      time.Duration // image, network and home, until the cluster fails
	OffRetry     time.Duration // until a machine is told again to go off
	Shortest     time.Duration // no deadline from history is shorter
	Longest      time.Duration // no deadline from history is longer
	BootAttempts int           // failed boots until the node is given up
	CleanTries   int           // failed cleanings until the machine is suspect
	OffTries     int           // vain switch-offs until the machine is fenced
	RetryMin     time.Duration // wait after the first failed boot; doubles twice with each
	RetryMax     time.Duration
	PollMin      time.Duration // shortest wait between observations of a machine that is going off
	PollMax      time.Duration

	Machines    int           // machines that a node tries, BootAttempts times each, until it is given up
	Missed      int           // heartbeats in a row that a node misses until it counts as silent
	JustStarted time.Duration // after the start, until silence counts; Missed intervals at least
	PowerCut    time.Duration // after the start, until machines that are off count one by one
	Together    time.Duration // after a machine went off, to see whether others do
	Blackout    time.Duration // after most machines went off, until each counts by itself
	NoPower     time.Duration // between two tries to start a machine meanwhile
	CutOff      time.Duration // a node that only this server cannot reach is left alone so long
	Notice      time.Duration // until the scheduler notices by itself that a node does not respond
	Unreached   time.Duration // a node that the scheduler gave up and this server hears is left alone so long
	Unwell      time.Duration // a node whose agent complains is left alone so long
	ProbeEvery  time.Duration // between probes of a machine whose agent is silent

	Test        time.Duration // of a machine, without history
	TestPause   time.Duration // between a failed test and the next one
	TestsMost   int           // failed tests in a row until a machine is put into quarantine
	FaultWindow time.Duration // how long a fault counts
	FaultsMost  int           // faults by itself, or unrelated tenants under whom it failed, until it is put there although it passes
	AsideShare  int           // at most one machine in so many is put there for what happened under tenants
	GoodService time.Duration // under a cluster, until a machine that failed before is no longer doubtful
	AlikeShare  int           // one machine in so many that fail alike have a cause in common
	CleanLate   time.Duration // a cleaning takes remarkably long, without history

	Measurements int // measurements until a cluster is handed over without
	SlowMost     int // nodes that are replaced because they are slow, for each delivery

	// LeastAttempt is the number that a boot has at least: those of an earlier epoch of the
	// records may still be about.
	LeastAttempt int64

	Ending   time.Duration // for the scheduler to end its jobs when the walltime is over
	Pausing  time.Duration // for the scheduler to queue its jobs again when the cluster is paused
	Sync     time.Duration // for nodes to write to their volumes what they still have of them
	Thaw     time.Duration // for agents of machines that go on to report
	LeaveNow time.Duration // for the scheduler to queue the jobs of nodes again that leave now
}

// DefaultLimits suit machines of every kind.
func DefaultLimits() Limits {
	return Limits{
		Boot: 3 * time.Minute, Configure: 2 * time.Minute, Scheduler: time.Minute, Prepare: 15 * time.Minute,
		OffRetry: 10 * time.Second, Shortest: 15 * time.Second, Longest: 30 * time.Minute,
		BootAttempts: 3, CleanTries: 3, OffTries: 4,
		RetryMin: time.Second, RetryMax: 5 * time.Minute,
		PollMin: 20 * time.Millisecond, PollMax: time.Second,
		Machines: 3, Missed: 3, JustStarted: 15 * time.Second, PowerCut: 20 * time.Second, CutOff: 5 * time.Minute, Unreached: 15 * time.Second, Unwell: 10 * time.Minute,
		Together: 500 * time.Millisecond, Blackout: 10 * time.Minute, NoPower: 15 * time.Second,
		Notice: 45 * time.Second, ProbeEvery: 10 * time.Second,
		Test: 10 * time.Minute, TestPause: 30 * time.Second, TestsMost: 2,
		FaultWindow: 7 * 24 * time.Hour, FaultsMost: 3, AsideShare: 20, GoodService: 24 * time.Hour, AlikeShare: 10, CleanLate: 2 * time.Minute,
		Measurements: 5, SlowMost: 16, Ending: 30 * time.Second, Pausing: time.Minute, Sync: time.Minute, Thaw: time.Minute, LeaveNow: 10 * time.Second,
	}
}

func (l Limits) withDefaults() Limits {
	d := DefaultLimits()
	set(&l.Boot, d.Boot)
	set(&l.Configure, d.Configure)
	set(&l.Scheduler, d.Scheduler)
	set(&l.Prepare, d.Prepare)
	set(&l.OffRetry, d.OffRetry)
	set(&l.Shortest, d.Shortest)
	set(&l.Longest, d.Longest)
	set(&l.BootAttempts, d.BootAttempts)
	set(&l.CleanTries, d.CleanTries)
	set(&l.OffTries, d.OffTries)
	set(&l.RetryMin, d.RetryMin)
	set(&l.RetryMax, d.RetryMax)
	set(&l.PollMin, d.PollMin)
	set(&l.PollMax, d.PollMax)
	set(&l.Ending, d.Ending)
	set(&l.Measurements, d.Measurements)
	set(&l.SlowMost, d.SlowMost)
	set(&l.LeaveNow, d.LeaveNow)
	set(&l.Pausing, d.Pausing)
	set(&l.Sync, d.Sync)
	set(&l.Thaw, d.Thaw)
	set(&l.Machines, d.Machines)
	set(&l.Missed, d.Missed)
	set(&l.JustStarted, d.JustStarted)
	set(&l.PowerCut, d.PowerCut)
	set(&l.Together, d.Together)
	set(&l.Blackout, d.Blackout)
	set(&l.NoPower, d.NoPower)
	set(&l.CutOff, d.CutOff)
	set(&l.Unreached, d.Unreached)
	set(&l.Unwell, d.Unwell)
	set(&l.Notice, d.Notice)
	set(&l.ProbeEvery, d.ProbeEvery)
	set(&l.Test, d.Test)
	set(&l.TestPause, d.TestPause)
	set(&l.TestsMost, d.TestsMost)
	set(&l.FaultWindow, d.FaultWindow)
	set(&l.FaultsMost, d.FaultsMost)
	set(&l.AsideShare, d.AsideShare)
	set(&l.GoodService, d.GoodService)
	set(&l.AlikeShare, d.AlikeShare)
	set(&l.CleanLate, d.CleanLate)
	return l
}

// slower is how many times as long all takes on a processor that is a program.
const slower = 5

// Patient are limits for machines that take so many times as long for all that they do.
func (l Limits) Patient(times int) Limits {
	l, n := l.withDefaults(), time.Duration(times)
	l.Boot, l.Configure, l.Scheduler, l.Ending, l.Pausing = n*l.Boot, n*l.Configure, n*l.Scheduler, n*l.Ending, n*l.Pausing
	l.Sync, l.Thaw = n*l.Sync, n*l.Thaw
	// One whose programs take all of its processors answers nobody for half a minute.
	l.Missed, l.JustStarted = times*l.Missed, n*l.JustStarted
	return l
}

// retryAfter is how long to wait after so many failures in a row.
func (l Limits) retryAfter(failures int) time.Duration {
	d := l.RetryMin
	for range min(failures-1, 15) {
		d *= 4
		if d >= l.RetryMax {
			return l.RetryMax
		}
	}
	return min(d, l.RetryMax)
}

// Span is how long something usually takes: the median of its history and the
// median distance from it. The zero Span is no history.
type Span struct {
	Median, Spread time.Duration
	N              int
}

// Times are the spans of one class of machine with one image.
type Times struct {
	Boot, Configure, Build Span
	Scale                  Span // from the request for more nodes until they take jobs
	Save                   Span // of virtual machines, for a GiB of memory
	Delete                 Span // from the request to delete until all machines are clean
}

// SpanOf summarizes a history.
func SpanOf(history []time.Duration) Span {
	history = slices.DeleteFunc(slices.Clone(history), func(d time.Duration) bool { return d < 0 }) // of a clock that was set back
	if len(history) == 0 {
		return Span{}
	}
	m := median(history)
	off := make([]time.Duration, len(history))
	for i, d := range history {
		off[i] = (d - m).Abs()
	}
	return Span{Median: m, Spread: median(off), N: len(history)}
}

func median(v []time.Duration) time.Duration {
	s := slices.Sorted(slices.Values(v))
	if n := len(s); n%2 == 0 {
		return (s[n/2-1] + s[n/2]) / 2
	}
	return s[len(s)/2]
}

// enough is how many times something was seen until it may be given up sooner than
// without any history: a few quick ones say nothing of a rack that starts as a whole.
const enough = 20

// deadline is when something that usually takes the span is given up: far
// enough out that an honest slow one is not killed.
func (l Limits) deadline(s Span, def time.Duration) time.Duration {
	if s.N < 3 {
		return def
	}
	d := max(4*s.Median, s.Median+10*s.Spread)
	return min(max(d, l.Shortest), max(l.Longest, def))
}

// configureWithin is the deadline of a node that is configured. Its agent speaks, so it is
// not in vain that it takes longer beside others: few samples do not shorten it.
func (l Limits) configureWithin(s Span) time.Duration {
	d := l.deadline(s, l.Configure)
	if s.N < enough {
		d = max(d, l.Configure)
	}
	return d
}

// heldBack reports whether a node is not tried again yet. A time further ahead
// than any wait was written before the clock was set back.
func (l Limits) heldBack(n muster.Node, now time.Time) bool {
	return now.Before(n.NotBefore) && !n.NotBefore.After(now.Add(2*max(l.RetryMax, l.NoPower)))
}

// late is how long something takes at most before it is remarkable.
func (s Span) late(def time.Duration) time.Duration {
	if s.N == 0 {
		return def
	}
	return max(s.Median+5*s.Spread, s.Median*3/2, s.Median+2*time.Second)
}
