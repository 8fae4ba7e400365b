package analysis

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"time"

	muster "github.com/muster-hpc/muster"
)

// Launch is what one run of the probe said.
type Launch struct {
	Mode    Mode
	Seed    uint64
	Started time.Time
	// MPI, Compiler, Flags and Source (a digest) say what was run. Figures of
	// different ones are not compared.
	MPI, Compiler, Flags, Source string
	Timer                        string
	Clock                        float64 // seconds that the timer's steps have
	Cache                        int64   // bytes of last-level cache that sizes follow from

	Ranks      []RankFacts // by rank
	Samples    []Sample
	Findings   []Sample // what was wrong: Value means nothing, Check says why
	Transports []Transport
	Omitted    []Omitted

	// Unknown counts kinds of lines and metrics that a newer probe may have.
	Unknown int
}

// RankFacts are the conditions of one rank.
type RankFacts struct {
	Rank       int
	Host       string
	CPUs       string // the list that was in force
	BLAS       string // the file that was mapped
	BLASConfig string
	Threads    int // how many CPUs are
}

// Sample is the median of the repetitions in one launch.
type Sample struct {
	Metric, Unit    string
	Value, Min, Max float64
	// Mean is of the same repetitions; where that is not known, it is Value.
	Mean float64
	// Host is empty for what all ranks did together, and Rank is -1 then. So are
	// Peer and PeerRank where there is none.
	Host, Peer     string
	Rank, PeerRank int
	Size           int64 // bytes; 0 where it means nothing
	Threads        int
	Streams        int     // connections at once; 0 where it means nothing
	Offered        float64 // B/s that were sent; 0 where it means nothing
	Round          int     // -1 where there are none
	N              int     // repetitions
	Seconds        float64
	Check          string // how the results were checked, or what was wrong
	Line           int
}

// Transport is what carried the messages of one rank, as far as it knows.
type Transport struct {
	Rank          int
	PML, BTL, MTL []string // modules that Open MPI kept
	Mapped        []string // libraries of MPI and of fabrics
	Set           map[string]string
	Sent          map[string]int64 // bytes, by network interface
	TCP           []string         // addresses
}

// Omitted is something that a node could not measure, which is no failure: its image
// has no program for it.
type Omitted struct {
	Host, What, Text string
}

// Limits bound what Read takes: a probe that runs wild costs no more than them.
type Limits struct {
	LineBytes int // of one line
	Bytes     int64
	Samples   int
	Ranks     int
}

// DefaultLimits suit several thousand ranks.
func DefaultLimits() Limits {
	return Limits{LineBytes: 64 << 10, Bytes: 128 << 20, Samples: 1 << 18, Ranks: 1 << 16}
}

// mostProblems are told at once.
const mostProblems = 20

// Read reads what the probe printed. It returns EInvalid with a problem for each
// line that cannot be believed: a launch that has one is no measurement, for
// whatever spoiled that line may have spoiled others. Cut-off output is refused,
// too. Lines of unknown kinds and unknown metrics are counted and left out. A
// result that the probe found to be wrong is no problem but a finding.
func Read(r io.Reader, lim Limits) (Launch, error) {
	rd := &launchReader{lim: lim}
	capped := &io.LimitedReader{R: r, N: lim.Bytes + 1}
	in := bufio.NewReaderSize(capped, max(16, lim.LineBytes+1))
	for !rd.over {
		text, err := in.ReadSlice('\n')
		if len(text) == 0 && errors.Is(err, io.EOF) {
			break
		}
		rd.n++
		switch {
		case capped.N <= 0:
			rd.stop("the output is longer than %d bytes", lim.Bytes)
		case errors.Is(err, bufio.ErrBufferFull) || len(text) > lim.LineBytes:
			rd.stop("the line is longer than %d bytes", lim.LineBytes)
		case errors.Is(err, io.EOF):
			rd.stop("the line is cut off")
		case err != nil:
			return Launch{}, muster.Errorf(muster.EUnavailable, "the output of the probe cannot be read: %v", err).Wrap(err)
		default:
			rd.line(text)
		}
	}
	rd.finish()
	if len(rd.problems) > 0 {
		e := muster.Errorf(muster.EInvalid, "implausible output of the probe").
			WithHint("measure again; if it stays so, image and server may not fit each other")
		return Launch{}, e.Listing(rd.problems)
	}
	return rd.launch, nil
}

// launchReader collects lines and problems.
type launchReader struct {
	lim      Limits
	launch   Launch
	n        int // number of the line
	begun    bool
	ended    bool
	ranks    int // that were announced
	seen     map[int]bool
	carried  map[int]bool
	hosts    map[string]bool
	samples  int // lines of that kind
	over     bool
	problems []muster.Problem
}

func (r *launchReader) fail(field, format string, args ...any) {
	r.problems = append(r.problems, muster.Problem{Field: field, Place: fmt.Sprintf("line %d", r.n), Message: fmt.Sprintf(format, args...)})
	if len(r.problems) >= mostProblems {
		r.over = true
	}
}

// stop ends the reading: what follows is not worth it.
func (r *launchReader) stop(format string, args ...any) {
	r.fail("output", format, args...)
	r.over = true
}

func (r *launchReader) line(text []byte) {
	l, err := decodeLine(text)
	switch {
	case err != nil:
		r.fail("output", "%v: %s", err, clip(string(text)))
	case r.ended:
		r.stop("there is more after the end")
	case !r.begun && l.Kind != "launch":
		r.stop("the first line must be the launch, not %q", clip(l.Kind))
	default:
		r.take(l)
	}
}

func (r *launchReader) take(l *line) {
	switch l.Kind {
	case "launch":
		if r.begun {
			r.stop("a second launch begins here")
			return
		}
		r.header(l)
	case "rank":
		r.rank(l)
	case "sample":
		r.samples++
		r.sample(l)
	case "transport":
		r.transport(l)
	case "omitted":
		r.omitted(l)
	case "end":
		r.ended = true
		if l.Samples == nil || *l.Samples != r.samples {
			r.fail("samples", "the end does not confirm the %d samples that came", r.samples)
		}
	default:
		r.launch.Unknown++
	}
}

func (r *launchReader) header(l *line) {
	r.begun = true
	r.seen, r.carried, r.hosts = map[int]bool{}, map[int]bool{}, map[string]bool{}
	if l.V == nil || *l.V != 1 {
		r.stop("this server reads version 1 of the output")
		return
	}
	switch l.Mode {
	case Alone, Pairs, All, IO, Disk, Net, Sizes, Inside, Scale, Clients, Streams:
	default:
		r.fail("mode", "there is no mode %q", clip(string(l.Mode)))
	}
	if l.Ranks == nil || *l.Ranks < 1 || *l.Ranks > r.lim.Ranks {
		r.stop("ranks must be from 1 to %d", r.lim.Ranks)
		return
	}
	const farFuture = 1 << 40
	if l.Started < 0 || l.Started > farFuture || l.Cache < 0 {
		r.fail("started", "started or cache is absurd")
	}
	if l.Clock == nil || !(*l.Clock > 0 && *l.Clock < 1) {
		r.fail("clock", "the resolution of the clock is missing or absurd")
	} else {
		r.launch.Clock = *l.Clock
	}
	if l.Seed == nil {
		r.fail("seed", "is missing")
	} else {
		r.launch.Seed = *l.Seed
	}
	r.ranks = *l.Ranks
	r.launch.Mode, r.launch.Started, r.launch.Cache = l.Mode, time.Unix(l.Started, 0).UTC(), l.Cache
	r.launch.MPI, r.launch.Compiler, r.launch.Flags, r.launch.Source, r.launch.Timer = l.MPI, l.Compiler, l.Flags, l.Source, l.Timer
}

func (r *launchReader) rank(l *line) {
	switch {
	case l.Rank == nil || *l.Rank < 0 || *l.Rank >= r.ranks:
		r.fail("rank", "must be from 0 to %d", r.ranks-1)
	case r.seen[*l.Rank]:
		r.fail("rank", "%d is there twice", *l.Rank)
	case l.Host == "":
		r.fail("host", "is missing")
	case *l.Rank != len(r.launch.Ranks):
		r.fail("rank", "%d does not follow the one before", *l.Rank)
	default:
		r.seen[*l.Rank] = true
		r.hosts[l.Host] = true
		r.launch.Ranks = append(r.launch.Ranks, RankFacts{
			Rank: *l.Rank, Host: l.Host, CPUs: l.CPUs, BLAS: l.BLAS, BLASConfig: l.BLASConfig, Threads: l.Threads,
		})
	}
}

func (r *launchReader) sample(l *line) {
	if r.samples > r.lim.Samples {
		r.stop("more than %d samples", r.lim.Samples)
		return
	}
	unit, known := MetricUnit(l.Metric)
	if !known {
		unit, known = SweepUnit(l.Metric)
	}
	if !known {
		if l.Metric == "" {
			r.fail("metric", "is missing")
		}
		r.launch.Unknown++
		return
	}
	s := Sample{
		Metric: l.Metric, Unit: l.Unit, Host: l.Host, Peer: l.Peer, Rank: -1, PeerRank: -1,
		Size: l.Size, Threads: l.Threads, Streams: l.Streams, Offered: l.Offered, Round: -1, Check: l.Check, Line: r.n,
	}
	for _, f := range []struct {
		name string
		from *int
		to   *int
		most int
	}{{"rank", l.Rank, &s.Rank, r.ranks - 1}, {"peer_rank", l.PeerRank, &s.PeerRank, r.ranks - 1}, {"round", l.Round, &s.Round, 1 << 20}} {
		if f.from == nil {
			continue
		}
		if *f.from < 0 || *f.from > f.most {
			r.fail(f.name, "must be from 0 to %d", f.most)
			return
		}
		*f.to = *f.from
	}
	switch {
	case l.Unit != unit:
		r.fail("unit", "%s is measured in %s, not in %q", l.Metric, unit, clip(l.Unit))
	case l.OK == nil:
		r.fail("ok", "is missing")
	case l.Host != "" && !r.hosts[l.Host]:
		r.fail("host", "no rank is on %q", clip(l.Host))
	case l.Peer != "" && !r.hosts[l.Peer]:
		r.fail("peer", "no rank is on %q", clip(l.Peer))
	case !r.lives(s.Rank, l.Host) || !r.lives(s.PeerRank, l.Peer):
		r.fail("rank", "a rank is not on the host that the line says")
	case !*l.OK:
		r.launch.Findings = append(r.launch.Findings, s)
	default:
		if why := l.believable(); why != "" {
			r.fail("value", "%s: %s", l.Metric, why)
			return
		}
		s.Value, s.Min, s.Max, s.N, s.Seconds, s.Mean = *l.Value, *l.Min, *l.Max, *l.N, *l.Seconds, *l.Value
		if l.Mean != nil {
			s.Mean = min(max(*l.Mean, s.Min), s.Max)
		}
		r.launch.Samples = append(r.launch.Samples, s)
	}
}

// lives says whether a rank, if any, is on that host.
func (r *launchReader) lives(rank int, host string) bool {
	return rank < 0 || rank < len(r.launch.Ranks) && r.launch.Ranks[rank].Host == host
}

func (r *launchReader) transport(l *line) {
	if l.Rank == nil || *l.Rank < 0 || *l.Rank >= r.ranks || r.carried[*l.Rank] {
		r.fail("rank", "the transport of a rank that is not there, or for the second time")
		return
	}
	r.carried[*l.Rank] = true
	r.launch.Transports = append(r.launch.Transports, Transport{
		Rank: *l.Rank, PML: l.PML, BTL: l.BTL, MTL: l.MTL, Mapped: l.Mapped, Set: l.Set, Sent: l.Sent, TCP: l.TCP,
	})
}

// mostWhy is how much of a reason is kept.
const mostWhy = 240

// omitted takes what a node could not measure: once for each rank at most.
func (r *launchReader) omitted(l *line) {
	switch {
	case !r.hosts[l.Host]:
		r.fail("host", "no rank is on %q", clip(l.Host))
	case l.What == "" || l.Text == "":
		r.fail("what", "what was omitted, or why, is missing")
	case len(r.launch.Omitted) >= r.ranks:
		r.fail("what", "more was omitted than there are ranks")
	default:
		r.launch.Omitted = append(r.launch.Omitted, Omitted{Host: l.Host, What: clip(l.What), Text: clipTo(l.Text, mostWhy)})
	}
}

// finish looks for what did not come.
func (r *launchReader) finish() {
	if len(r.problems) > 0 {
		return // what is missing follows from them
	}
	switch {
	case !r.begun:
		r.fail("output", "there is none")
	case !r.ended:
		r.fail("output", "it was cut off: the end is missing after %d samples", r.samples)
	case len(r.launch.Ranks) != r.ranks:
		r.fail("rank", "%d of %d ranks reported", len(r.launch.Ranks), r.ranks)
	}
}
