package program

import (
	"bytes"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/cleantext"
)

// Stages of a run.
const (
	stageBuild = "build"
	stageRun   = "run"
)

// Report is what was found when the job of a run was looked at.
type Report struct {
	// State is queue while the scheduler has the job, ended, gone if nothing is left of it,
	// unknown if the scheduler does not answer.
	State string
	// Stage is build or run; "" if neither began.
	Stage string
	// Queue is what the scheduler says: its state, how long it runs, where, and why it waits.
	Queue, Elapsed, Where, Why string
	// Status is that of the last stage. Nil: the job was ended from outside, and Job says how.
	Status *int
	Job    string
	Nodes  []string
	// Build and Run are seconds, and Began and Ended when the program did, by the clock of its
	// first node.
	Build, Run   float64
	Began, Ended time.Time
	// MPI are the seconds from MPI_Init to MPI_Finalize, of all MPI jobs of the run. 0: none ran.
	MPI float64
	// Samples are of the processors of its nodes, before and after.
	Samples []Sample
	// Output of the last stage: its beginning and its end.
	Output string
}

// States of a report.
const (
	reportQueue   = "queue"
	reportEnded   = "ended"
	reportGone    = "gone"
	reportUnknown = "unknown"
)

var hostForm = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{0,62}$`)

const mostNodes = 1 << 16

// ReadReport reads what the script that looks printed. It comes from a node, and may be
// anything.
func ReadReport(b []byte) (Report, error) {
	var r Report
	for {
		line, rest, more := bytes.Cut(b, []byte("\n"))
		key, value, _ := strings.Cut(string(line), " ")
		b = rest
		switch key {
		case "state":
			if !slices.Contains([]string{reportQueue, reportEnded, reportGone, reportUnknown}, value) {
				return Report{}, unreadable(string(line))
			}
			r.State = value
		case "phase":
			if value == stageBuild || value == stageRun {
				r.Stage = value
			}
		case "queue":
			parts := append(strings.SplitN(cleantext.Line(cleantext.Cut(value, 4096)), "|", 4), "", "", "", "")
			r.Queue, r.Elapsed, r.Where, r.Why = parts[0], parts[1], parts[2], parts[3]
		case stageBuild, stageRun:
			began, ended, ok := between(value)
			if !ok {
				return Report{}, unreadable(string(line))
			}
			seconds := math.Round(max(ended-began, 0)*1e6) / 1e6
			if key == stageBuild {
				r.Build = seconds
			} else {
				r.Run, r.Began, r.Ended = seconds, clock(began), clock(ended)
			}
		case "mpi":
			v, err := strconv.ParseFloat(strings.ReplaceAll(value, ",", "."), 64)
			if err != nil || !(v >= 0 && v < 1e9) {
				return Report{}, unreadable(string(line))
			}
			r.MPI = v
		case "status":
			n, err := strconv.Atoi(value)
			if err != nil || n < 0 || n > 255 {
				return Report{}, unreadable(string(line))
			}
			r.Status = &n
		case "nodes":
			for _, name := range strings.Fields(value) {
				if !hostForm.MatchString(name) || len(r.Nodes) == mostNodes {
					return Report{}, unreadable(string(line))
				}
				r.Nodes = append(r.Nodes, name)
			}
		case "sampled":
			sample, ok := readSample(value)
			if !ok || len(r.Samples) == 3*mostNodes {
				return Report{}, unreadable(string(line))
			}
			r.Samples = append(r.Samples, sample)
		case "job":
			r.Job = cleantext.Line(cleantext.Cut(strings.TrimSpace(value), 500))
		case "output":
			r.Output = string(b)
			more = false
		case "":
		default:
			if r.State != "" { // before it, a shell may greet
				return Report{}, unreadable(string(line))
			}
		}
		if !more {
			break
		}
	}
	if r.State == "" {
		return Report{}, unreadable("")
	}
	return r, nil
}

// between are two moments, in seconds, as bash writes them.
func between(text string) (began, ended float64, ok bool) {
	left, right, _ := strings.Cut(strings.ReplaceAll(text, ",", "."), " ")
	began, err := strconv.ParseFloat(left, 64)
	ended, err2 := strconv.ParseFloat(right, 64)
	d := ended - began
	return began, ended, err == nil && err2 == nil && !math.IsNaN(d) && math.Abs(d) < 1e9
}

// clock is a moment by its seconds since 1970. The zero time: it cannot be one.
func clock(seconds float64) time.Time {
	if !(seconds >= 0 && seconds < 1e11) {
		return time.Time{}
	}
	return time.UnixMicro(int64(seconds * 1e6)).UTC()
}

func unreadable(line string) error {
	return muster.Errorf(muster.EInvalid, "what the job printed cannot be read: %.60q", line).Because(muster.ReasonBadSyntax).
		WithHint("look again; if it stays so, look into ~/.muster/runs on the cluster")
}

// Text is how a run is in one line, for people who wait.
func (r Report) Text() string {
	switch {
	case r.State == reportUnknown:
		return "the scheduler does not answer"
	case r.State != reportQueue:
		return "it has ended"
	case r.Queue == "PENDING" && (r.Why == "" || r.Why == "None"): // not looked at yet
		return "it waits in the queue"
	case r.Queue == "PENDING":
		return "it waits in the queue: " + r.Why
	case r.Stage == stageBuild:
		return "it is built on " + r.Where + ", for " + r.Elapsed
	case r.Stage == stageRun:
		return "it runs on " + r.Where + ", for " + r.Elapsed
	}
	return "its job is " + strings.ToLower(r.Queue)
}

// Open reports whether the job goes on, as far as is known.
func (r Report) Open() bool { return r.State == reportQueue || r.State == reportUnknown }

// Running reports whether the program has begun, on the nodes at Where.
func (r Report) Running() bool { return r.State == reportQueue && r.Stage == stageRun }
