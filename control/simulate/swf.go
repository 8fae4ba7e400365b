package simulate

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
)

// SWFOptions say how a trace of processors becomes one of machines.
type SWFOptions struct {
	// CoresPerMachine: so many processors are one machine, rounded up. 0: 1.
	CoresPerMachine int
	// Machines of the site. 0: what the header of the trace says, or the largest job.
	Machines int
	// Jobs is how many are read at most. 0: all.
	Jobs int
}

// maxSWFLine bounds a line of a trace.
const maxSWFLine = 64 << 10

// ReadSWF reads a trace in the Standard Workload Format, version 2.2 (Chapin and others,
// JSSPP 1999): 18 numbers a line, -1 for what is not known, and comments after a semicolon.
// It may be packed with gzip. Jobs that never ran are left out and counted. The error is a
// *muster.Error with code EInvalid that names each bad line, at most ten.
func ReadSWF(r io.Reader, o SWFOptions) (Workload, error) {
	in := bufio.NewReader(r)
	if magic, err := in.Peek(2); err == nil && magic[0] == 0x1f && magic[1] == 0x8b {
		z, err := gzip.NewReader(in)
		if err != nil {
			return Workload{}, muster.Errorf(muster.EInvalid, "the trace is packed, and cannot be unpacked").Because(muster.ReasonBadSyntax).WithHint("fetch it again").Wrap(err)
		}
		in = bufio.NewReader(z)
	}
	per := max(1, o.CoresPerMachine)
	var w Workload
	var problems []muster.Problem
	skipped, header, largest := 0, 0, 0
	scan := bufio.NewScanner(in)
	scan.Buffer(make([]byte, 0, 4096), maxSWFLine)
	for n := 1; scan.Scan() && len(problems) < 10 && (o.Jobs == 0 || len(w.Jobs) < o.Jobs); n++ {
		line := strings.TrimSpace(scan.Text())
		if comment, is := strings.CutPrefix(line, ";"); is {
			if key, value, ok := strings.Cut(comment, ":"); ok && header == 0 {
				fields := strings.Fields(value)
				if k := strings.TrimSpace(key); (k == "MaxNodes" || k == "MaxProcs") && len(fields) > 0 {
					if v, err := strconv.Atoi(fields[0]); err == nil && v > 0 && v < 1<<30 {
						header = v
						if k == "MaxProcs" {
							header = (v + per - 1) / per
						}
					}
				}
			}
			continue
		}
		if line == "" {
			continue
		}
		job, ran, err := swfJob(strings.Fields(line), per)
		switch {
		case err != nil:
			problems = append(problems, muster.Problem{Field: "line", Place: fmt.Sprintf("line %d", n), Reason: muster.ReasonBadSyntax, Message: err.Error(), Hint: "a line has 18 numbers"})
		case !ran:
			skipped++
		default:
			largest = max(largest, job.Nodes)
			w.Jobs = append(w.Jobs, job)
		}
	}
	if err := scan.Err(); err != nil {
		problems = append(problems, muster.Problem{Field: "line", Reason: muster.ReasonBadSyntax, Message: "the trace cannot be read on: " + err.Error(), Hint: "is it in the Standard Workload Format?"})
	}
	if len(problems) == 0 && len(w.Jobs) == 0 {
		problems = append(problems, muster.Problem{Field: "line", Reason: muster.ReasonRequired, Message: "there is no job in it", Hint: "is it in the Standard Workload Format?"})
	}
	if len(problems) > 0 {
		return Workload{}, muster.Errorf(muster.EInvalid, "the trace has problems").Because(muster.ReasonHasProblems).Listing(problems)
	}
	slices.SortStableFunc(w.Jobs, func(a, b Job) int { return int(a.Submit - b.Submit) })
	first := w.Jobs[0].Submit
	for i := range w.Jobs {
		w.Jobs[i].Submit -= first
		w.Jobs[i].Number = i + 1
	}
	w.Machines = o.Machines
	if w.Machines == 0 {
		w.Machines = max(header, largest)
	}
	w.Jobs = slices.DeleteFunc(w.Jobs, func(j Job) bool {
		if j.Nodes > w.Machines {
			skipped++
		}
		return j.Nodes > w.Machines
	})
	if skipped > 0 {
		w.Notes = append(w.Notes, fmt.Sprintf("%d jobs were left out: they never ran, or need more machines than there are", skipped))
	}
	return w, nil
}

// swfJob reads one line. ran is false for a job that never ran.
func swfJob(fields []string, per int) (j Job, ran bool, err error) {
	if len(fields) != 18 {
		return j, false, fmt.Errorf("it has %d fields", len(fields))
	}
	var v [18]int64
	for i, f := range fields {
		x, err := strconv.ParseFloat(f, 64)
		if err != nil || x != x || x < -1 || x > 1e12 {
			return j, false, fmt.Errorf("field %d is %.20q", i+1, f)
		}
		v[i] = int64(x)
	}
	processors := v[7]
	if processors <= 0 {
		processors = v[4]
	}
	runtime, walltime := v[3], v[8]
	if runtime <= 0 || processors <= 0 || processors > 1<<30 || v[1] < 0 || runtime > 10*366*24*3600 || walltime > 10*366*24*3600 || v[1] > 100*366*24*3600 {
		return j, false, nil
	}
	walltime = max(walltime, runtime)
	return Job{
		User: fmt.Sprint("u", v[11]), Submit: time.Duration(v[1]) * time.Second, Nodes: (int(processors) + per - 1) / per,
		Runtime: time.Duration(runtime) * time.Second, Walltime: time.Duration(walltime) * time.Second,
	}, true, nil
}
