package hpl

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/muster-hpc/muster"
)

// Output is what one launch of xhpl printed.
type Output struct {
	// MPI, Compiler, Flags and Source (a digest) say what was run.
	MPI, Compiler, Flags, Source string
	Ranks                        []Rank
	// Solutions passed their check. Failed are those that did not: they are no
	// figures.
	Solutions, Failed []Solution
	// Skipped counts tests that HPL did not do, mostly for want of memory.
	Skipped int
}

// Rank is what one rank said of itself.
type Rank struct {
	Host       string
	CPUs       string // the list that was in force
	BLAS       string // the file that was mapped
	BLASConfig string
	Threads    int // with which the BLAS works; 0: it does not say
}

// Solution is one system of equations that HPL solved.
type Solution struct {
	Variant  string  `json:"variant"` // HPL's short form of how
	N        int     `json:"n"`
	NB       int     `json:"nb"`
	P        int     `json:"p"`
	Q        int     `json:"q"`
	Seconds  float64 `json:"seconds"`         // with two decimals
	Rate     float64 `json:"flop_per_second"` // flop/s, with four digits
	Residual float64 `json:"residual"`        // scaled; below 16
}

// Limits bound what Read takes.
type Limits struct {
	LineBytes int
	Bytes     int64
	Ranks     int
	Solutions int
}

// DefaultLimits suit several thousand ranks.
func DefaultLimits() Limits {
	return Limits{LineBytes: 16 << 10, Bytes: 64 << 20, Ranks: 1 << 16, Solutions: 1 << 12}
}

// Read reads what xhpl printed. EInvalid tells the first thing that cannot be
// believed: output that was cut off, counts that do not fit, a rate that does not
// fit its time. Lines that are not HPL's are left out: mpirun and libraries print,
// too.
func Read(in io.Reader, lim Limits) (Output, error) {
	r := &reader{lim: lim}
	capped := &io.LimitedReader{R: in, N: lim.Bytes + 1}
	lines := bufio.NewReaderSize(capped, max(16, lim.LineBytes+1))
	for {
		text, err := lines.ReadSlice('\n')
		if len(text) == 0 && errors.Is(err, io.EOF) {
			break
		}
		r.n++
		switch {
		case capped.N <= 0:
			return Output{}, r.bad("the output is longer than %d bytes", lim.Bytes)
		case errors.Is(err, bufio.ErrBufferFull) || len(text) > lim.LineBytes:
			return Output{}, r.bad("the line is longer than %d bytes", lim.LineBytes)
		case errors.Is(err, io.EOF):
			return Output{}, r.bad("the line is cut off")
		case err != nil:
			return Output{}, muster.Errorf(muster.EUnavailable, "the output of HPL cannot be read: %v", err).Wrap(err)
		}
		if err := r.line(strings.TrimRight(string(text), "\r\n")); err != nil {
			return Output{}, err
		}
	}
	return r.out, r.finish()
}

// The lines of HPL 2 that matter.
var (
	timeLine     = regexp.MustCompile(`^W([RC][0-9][0-9][LCR][0-9]+[LCR][0-9]+) +([0-9]+) +([0-9]+) +([0-9]+) +([0-9]+) +([0-9.]+) +([0-9.e+-]+)$`)
	residualLine = regexp.MustCompile(`^\|\|Ax-b\|\|_oo/\(eps\*.*\)= *([^ ]+) \.\.\.\.\.\. (PASSED|FAILED)$`)
	finishedLine = regexp.MustCompile(`^Finished +([0-9]+) tests with the following results:$`)
	countLine    = regexp.MustCompile(`^ +([0-9]+) tests (completed and passed|completed and failed|skipped because of)`)
)

type reader struct {
	lim   Limits
	out   Output
	n     int       // number of the line
	ranks int       // that were announced
	open  *Solution // it waits for its check
	// What HPL says at its end.
	finished, passed, failed, skipped int
	counted                           bool
	ended                             bool
}

func (r *reader) bad(format string, args ...any) error {
	e := muster.Errorf(muster.EInvalid, "implausible output of HPL").WithHint("measure again")
	return e.Listing([]muster.Problem{{Field: "output", Place: fmt.Sprintf("line %d", r.n), Message: fmt.Sprintf(format, args...)}})
}

func (r *reader) line(text string) error {
	switch {
	case strings.HasPrefix(text, `{"kind":`):
		return r.fact(text)
	case strings.HasPrefix(text, "WR") || strings.HasPrefix(text, "WC"):
		return r.time(text)
	case strings.HasPrefix(text, "||Ax-b||_oo/"):
		return r.residual(text)
	case strings.HasPrefix(text, "Finished "):
		return r.count(finishedLine, text, &r.finished)
	case r.counted && countLine.MatchString(text):
		m := countLine.FindStringSubmatch(text)
		return r.count(countLine, text, map[string]*int{
			"completed and passed": &r.passed, "completed and failed": &r.failed, "skipped because of": &r.skipped,
		}[m[2]])
	case text == "End of Tests.":
		r.ended = true
	}
	return nil
}

// count reads one number of HPL's summary.
func (r *reader) count(form *regexp.Regexp, text string, to *int) error {
	m := form.FindStringSubmatch(text)
	if m == nil {
		return r.bad("%q is not how HPL ends", clip(text))
	}
	n, err := strconv.Atoi(m[1])
	if err != nil || n > 1<<20 {
		return r.bad("%q is not a sensible number", clip(m[1]))
	}
	*to, r.counted = n, true
	return nil
}

// fact is a line of ours, before HPL begins.
func (r *reader) fact(text string) error {
	var l struct {
		Kind       string `json:"kind"`
		V          int    `json:"v"`
		Ranks      int    `json:"ranks"`
		MPI        string `json:"mpi"`
		Compiler   string `json:"compiler"`
		Flags      string `json:"flags"`
		Source     string `json:"source"`
		Rank       int    `json:"rank"`
		Host       string `json:"host"`
		CPUs       string `json:"cpus"`
		BLAS       string `json:"blas"`
		BLASConfig string `json:"blas_config"`
		Threads    int    `json:"threads"`
	}
	if err := json.Unmarshal([]byte(text), &l); err != nil {
		return r.bad("not a line of JSON: %s", clip(text))
	}
	switch l.Kind {
	case "hpl":
		if r.ranks > 0 || l.V != 1 || l.Ranks < 1 || l.Ranks > r.lim.Ranks {
			return r.bad("a second beginning, another version than 1, or not from 1 to %d ranks", r.lim.Ranks)
		}
		r.ranks = l.Ranks
		r.out.MPI, r.out.Compiler, r.out.Flags, r.out.Source = l.MPI, l.Compiler, l.Flags, l.Source
	case "rank":
		if l.Rank != len(r.out.Ranks) || l.Rank >= r.ranks || l.Host == "" || l.Threads < 0 {
			return r.bad("rank %d of %d is not the next, or says nothing of itself", l.Rank, r.ranks)
		}
		r.out.Ranks = append(r.out.Ranks, Rank{Host: l.Host, CPUs: l.CPUs, BLAS: l.BLAS, BLASConfig: l.BLASConfig, Threads: l.Threads})
	}
	return nil
}

func (r *reader) time(text string) error {
	m := timeLine.FindStringSubmatch(text)
	if m == nil {
		return r.bad("%q is not how HPL tells a time", clip(text))
	}
	if r.open != nil || r.counted {
		return r.bad("a second time before the check of the first, or after the end")
	}
	if len(r.out.Solutions)+len(r.out.Failed) >= r.lim.Solutions {
		return r.bad("more than %d solutions", r.lim.Solutions)
	}
	s := Solution{Variant: "W" + m[1]}
	for i, to := range []*int{&s.N, &s.NB, &s.P, &s.Q} {
		n, err := strconv.Atoi(m[2+i])
		if err != nil || n < 1 || n > mostN {
			return r.bad("%q is not a sensible size", clip(m[2+i]))
		}
		*to = n
	}
	gigaflops, err1 := strconv.ParseFloat(m[7], 64)
	took, err2 := strconv.ParseFloat(m[6], 64)
	if errors.Join(err1, err2) != nil || !(gigaflops > 0) || math.IsInf(gigaflops, 0) || !(took >= 0) || math.IsInf(took, 0) {
		return r.bad("time or rate is not a number: %q", clip(text))
	}
	s.Seconds, s.Rate = took, math.Round(gigaflops*1e9) // four digits: no more than was printed
	// HPL rounds the time to hundredths and the rate to four digits.
	if real := Flops(s.N) / s.Rate; math.Abs(real-took) > 0.0051+real*6e-4 {
		return r.bad("the rate does not fit the time: N = %d in %.2f s is not %s Gflops", s.N, took, m[7])
	}
	r.open = &s
	return nil
}

func (r *reader) residual(text string) error {
	m := residualLine.FindStringSubmatch(text)
	if m == nil || r.open == nil {
		return r.bad("a check that is none, or of nothing: %q", clip(text))
	}
	s := *r.open
	r.open = nil
	v, err := strconv.ParseFloat(m[1], 64)
	if m[2] == "FAILED" {
		if err == nil && !math.IsNaN(v) && !math.IsInf(v, 0) {
			s.Residual = v
		}
		r.out.Failed = append(r.out.Failed, s)
		return nil
	}
	if err != nil || !(v >= 0 && v < threshold) {
		return r.bad("the residual check did not pass: %q", clip(m[1]))
	}
	s.Residual = v
	r.out.Solutions = append(r.out.Solutions, s)
	return nil
}

// finish looks for what did not come.
func (r *reader) finish() error {
	switch {
	case r.ranks == 0:
		return r.bad("there is no beginning")
	case len(r.out.Ranks) != r.ranks:
		return r.bad("%d of %d ranks reported", len(r.out.Ranks), r.ranks)
	case !r.counted || !r.ended:
		return r.bad("it was cut off: the end is missing after %d solutions", len(r.out.Solutions))
	case r.open != nil || r.passed != len(r.out.Solutions) || r.failed != len(r.out.Failed) || r.finished != r.passed+r.failed+r.skipped:
		return r.bad("the end speaks of %d tests, %d passed and %d failed; there were %d and %d",
			r.finished, r.passed, r.failed, len(r.out.Solutions), len(r.out.Failed))
	}
	r.out.Skipped = r.skipped
	return nil
}

func clip(s string) string {
	if len(s) > 80 {
		return s[:80] + "..."
	}
	return s
}
