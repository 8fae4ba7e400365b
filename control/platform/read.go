package platform

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/program"
	"github.com/muster-hpc/muster/internal/cleantext"
)

// Bounds of a file. It is kept as one record.
const (
	MostBytes    = 8 << 20
	mostLine     = 64 << 10
	mostRanks    = 1 << 20
	mostNodes    = 4096
	mostLaunches = 5000
	mostProblems = 50
)

const kind = "muster-platform/1"

type header struct {
	Kind     string    `json:"kind"`
	Name     string    `json:"name"`
	Began    time.Time `json:"began"`
	Kit      string    `json:"kit"`
	Launcher string    `json:"launcher"`
	Compiler string    `json:"compiler"`
	Flags    string    `json:"flags"`
	MPI      string    `json:"mpi"`
	Launches int       `json:"launches"`
}

// fact is what one rank found.
type fact struct {
	Ranks          int    `json:"ranks"`
	Node           string `json:"node"`
	Local          *int   `json:"local"`
	CPU            *int   `json:"cpu"`
	NIC            string `json:"nic"`
	NICCell        *int   `json:"nic_cell"`
	Near           *bool  `json:"near"`
	Processor      string `json:"processor"`
	Sockets        int    `json:"sockets"`
	Cores          int    `json:"cores"`
	Memory         int64  `json:"memory_bytes"`
	Kernel         string `json:"kernel"`
	Governor       string `json:"governor"`
	Virtualization string `json:"virtualization"`
}

type launch struct {
	Program string    `json:"program"`
	Class   string    `json:"class"`
	Ranks   int       `json:"ranks"`
	Round   int       `json:"round"`
	Began   time.Time `json:"began"`
	Load    float64   `json:"load"`
	Wall    float64   `json:"wall_seconds"`
	Status  int       `json:"status"`
	Message string    `json:"message"`
	Result  *result   `json:"result"`
}

// result is what of a program's own words counts; it prints more.
type result struct {
	Program  string  `json:"program"`
	Class    string  `json:"class"`
	Ranks    int     `json:"ranks"`
	Seconds  float64 `json:"seconds"`
	Mops     float64 `json:"mops"`
	Verified bool    `json:"verified"`
}

var (
	nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)
	kitForm  = regexp.MustCompile(`^[0-9a-f]{64}$`)
	nodeForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,252}$`)
)

// ValidName reports whether a platform may be called so.
func ValidName(name string) bool { return nameForm.MatchString(name) }

// Read reads a file that the script wrote, gzipped or not. It comes from another site, and may be anything: all
// that is wrong is in the error's Problems, each with its line.
func Read(data []byte) (muster.Platform, error) {
	r := reader{facts: map[int]map[string]*nodeFacts{}}
	if bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(bytes.NewReader(data))
		if err == nil {
			data, err = io.ReadAll(io.LimitReader(z, MostBytes+1))
		}
		if err != nil {
			r.bad("file", muster.ReasonBrokenOff, "send it again", "the file's compression is broken: %v", err)
			return muster.Platform{}, r.err()
		}
	}
	if len(data) > MostBytes {
		r.bad("file", muster.ReasonTooLarge, "split it by programs: each file is a platform", "the file has more than %d MiB", MostBytes>>20)
		return muster.Platform{}, r.err()
	}
	in := bufio.NewReaderSize(bytes.NewReader(data), mostLine)
	for r.line = 1; len(r.problems) < mostProblems; r.line++ {
		line, err := in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			r.bad("file", muster.ReasonTooLarge, "give the file that the script wrote, unchanged", "the line is longer than %d KiB", mostLine>>10)
			break
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			r.take(line)
		}
		if err == io.EOF {
			break
		}
	}
	p := r.platform()
	if r.line = 0; len(r.problems) == 0 {
		switch {
		case p.Kit == "":
			r.bad("kind", muster.ReasonRequired, "give the file that ./measure wrote", "no line says that this is a platform")
		case len(p.Launches) == 0:
			r.bad("launches", muster.ReasonRequired, "run ./measure to its end", "there is no launch in it")
		}
	}
	return p, r.err()
}

type reader struct {
	line     int
	problems []muster.Problem
	p        muster.Platform
	facts    map[int]map[string]*nodeFacts // by number of ranks, by node
	nodes    int
}

func (r *reader) bad(field string, why muster.Reason, hint, format string, args ...any) {
	p := muster.Problem{Field: field, Reason: why, Message: fmt.Sprintf(format, args...), Hint: hint}
	if r.line > 0 {
		p.Place = fmt.Sprintf("line %d", r.line)
	}
	r.problems = append(r.problems, p)
}

func (r *reader) err() error {
	if len(r.problems) == 0 {
		return nil
	}
	return muster.Errorf(muster.EInvalid, "this is no platform that can be loaded").Because(muster.ReasonHasProblems).Listing(r.problems)
}

// take reads one line: its first field says what it is of.
func (r *reader) take(line []byte) {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(line, &keys); err != nil {
		hint := "give the file that ./measure wrote, unchanged"
		if line[len(line)-1] != '}' {
			hint = "the line is cut off: run ./measure again with the same --output, or delete the line"
		}
		r.bad("file", muster.ReasonBadSyntax, hint, "%.40q is no line of JSON", line)
		return
	}
	switch {
	case keys["kind"] != nil:
		r.header(line)
	case keys["node"] != nil:
		r.fact(line)
	case keys["program"] != nil:
		r.launch(line)
	default:
		r.bad("file", muster.ReasonUnknownField, "give the file that ./measure wrote, unchanged", "%.40q is neither a platform, a node nor a launch", line)
	}
}

func decode[T any](r *reader, what string, line []byte) (T, bool) {
	var v T
	d := json.NewDecoder(bytes.NewReader(line))
	if err := d.Decode(&v); err != nil {
		field := what
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			field += "." + wrong.Field
		}
		r.bad(field, muster.ReasonWrongType, "give the file that ./measure wrote, unchanged", "it cannot be read: %s", cleantext.Line(cleantext.Cut(err.Error(), 200)))
		return v, false
	}
	return v, true
}

func text(s string) string { return cleantext.Line(cleantext.Cut(s, 256)) }

// header is the first line, and that of each time that the script went on: those agree.
func (r *reader) header(line []byte) {
	h, ok := decode[header](r, "platform", line)
	if !ok {
		return
	}
	if h.Kind != kind {
		r.bad("kind", muster.ReasonOtherVersion, "measure again with a kit of this Muster: muster platform kit", "it is %.40q, and this Muster reads %s", h.Kind, kind)
		return
	}
	if !nameForm.MatchString(h.Name) {
		r.bad("name", muster.ReasonBadName, "write lower-case letters, digits and hyphens", "%.70q is no name of a platform", h.Name)
	}
	if !kitForm.MatchString(h.Kit) {
		r.bad("kit", muster.ReasonBadValue, "give the file that ./measure wrote, unchanged", "%.70q is no SHA-256 in hex", h.Kit)
	}
	next := muster.Platform{Name: h.Name, Began: h.Began.UTC(), Kit: h.Kit, Launcher: text(h.Launcher), Compiler: text(h.Compiler), Flags: text(h.Flags), MPI: text(h.MPI)}
	if r.p.Kit == "" {
		r.p.Name, r.p.Began, r.p.Kit, r.p.Launcher, r.p.Compiler, r.p.Flags, r.p.MPI = next.Name, next.Began, next.Kit, next.Launcher, next.Compiler, next.Flags, next.MPI
		return
	}
	for _, d := range []struct{ field, was, is string }{
		{"name", r.p.Name, next.Name}, {"kit", r.p.Kit, next.Kit}, {"launcher", r.p.Launcher, next.Launcher},
		{"compiler", r.p.Compiler, next.Compiler}, {"flags", r.p.Flags, next.Flags}, {"mpi", r.p.MPI, next.MPI},
	} {
		if d.was != d.is {
			r.bad(d.field, muster.ReasonContradiction, "measure into a file of its own: --output", "the script went on under other conditions: %.70q was %.70q", d.is, d.was)
		}
	}
}

func within(n, low, high int) bool { return n >= low && n <= high }

func (r *reader) launch(line []byte) {
	l, ok := decode[launch](r, "launch", line)
	if !ok {
		return
	}
	const unchanged = "give the file that ./measure wrote, unchanged"
	if r.p.Kit == "" {
		r.bad("kind", muster.ReasonRequired, unchanged, "a launch stands before the line that says what the platform is")
	}
	p, known := program.Builtin(l.Program)
	if !known {
		r.bad("launch.program", muster.ReasonBadValue, unchanged, "there is no built-in program %.40q", l.Program)
	} else if bad := program.CheckFactors(p, l.Class, "", nil); len(bad) > 0 {
		r.bad("launch.class", muster.ReasonBadValue, unchanged, "%s", bad[0].Message)
	}
	if !within(l.Ranks, 1, mostRanks) {
		r.bad("launch.ranks", muster.ReasonOutOfRange, unchanged, "%d is no number of ranks", l.Ranks)
	}
	if !within(l.Round, 1, 1<<20) {
		r.bad("launch.round", muster.ReasonOutOfRange, unchanged, "%d is no round", l.Round)
	}
	if !within(l.Status, 0, 255) {
		r.bad("launch.status", muster.ReasonOutOfRange, unchanged, "%d is no exit status", l.Status)
	}
	if !amount(l.Wall) || !amount(l.Load) {
		r.bad("launch.wall_seconds", muster.ReasonOutOfRange, unchanged, "%g seconds at a load of %g cannot be", l.Wall, l.Load)
	}
	out := muster.PlatformLaunch{Program: l.Program, Class: l.Class, Ranks: l.Ranks, Round: l.Round, Began: l.Began.UTC(), Load: l.Load, Wall: l.Wall, Status: l.Status, Message: text(l.Message)}
	if l.Result != nil {
		if l.Result.Ranks != 0 && l.Result.Ranks != l.Ranks {
			r.bad("launch.result.ranks", muster.ReasonContradiction, "the launcher starts ranks that do not find each other: load the MPI that built the programs", "%d ranks were asked for, and the program had %d", l.Ranks, l.Result.Ranks)
		}
		if !amount(l.Result.Seconds) || !amount(l.Result.Mops) {
			r.bad("launch.result", muster.ReasonOutOfRange, unchanged, "%g s and %g Mop/s cannot be", l.Result.Seconds, l.Result.Mops)
		}
		out.Seconds, out.Mops, out.Verified = l.Result.Seconds, l.Result.Mops, l.Result.Verified
	}
	if len(r.p.Launches) == mostLaunches {
		r.bad("launches", muster.ReasonTooMany, "split it by programs: each file is a platform", "there are more than %d launches", mostLaunches)
		return
	}
	r.p.Launches = append(r.p.Launches, out)
}

func amount(v float64) bool { return v >= 0 && v < 1e15 && !math.IsNaN(v) }

// platform is what was read, with nodes and layouts put together.
func (r *reader) platform() muster.Platform {
	p := r.p
	p.Nodes, p.Layouts = r.groups()
	slices.SortStableFunc(p.Launches, func(a, b muster.PlatformLaunch) int { return a.Began.Compare(b.Began) })
	return p
}
