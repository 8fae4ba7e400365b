package configure

import (
	"crypto/rand"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-hpc/muster/internal/cleantext"
	"github.com/muster-hpc/muster/wire"
)

// squeueFormat asks for all that parseSqueue reads; the name is free text and
// stands last.
const squeueFormat = "%i|%U|%u|%T|%D|%N|%S|%l|%r|%j"

// squeueQuestion makes each job begin with a mark, which is made anew for each question: a
// name may hold whole lines that look like jobs, and cannot hold what nobody knew when it
// was given.
func squeueQuestion(mark string) []string {
	return []string{"--noheader", "--states=RUNNING,COMPLETING,PENDING,SUSPENDED,CONFIGURING", "--format=" + mark + squeueFormat}
}

// newMark is such a mark.
func newMark() string { return "job-" + rand.Text() + "|" }

// queue is what squeue tells.
type queue struct {
	running, pending int
	list             []wire.Job // newest first, at most wire.MaxJobs
	// active are the IDs of jobs that run or end; strangers those of people
	// who are not of this cluster any more.
	active, strangers []string
	// held are the IDs of jobs that Slurm itself holds.
	held []string
	// completing are those of active that end already, and lost those that cannot be queued
	// again.
	completing, lost map[string]bool
	// suspended are those of active that stand still.
	suspended map[string]bool
}

// jobID is how squeue writes the number of a job, or of several of an array.
var jobID = regexp.MustCompile(`^[0-9]+(_[0-9]+|_\[[0-9,:%.-]+\]|\+[0-9]+)?$`)

// maxJobText bounds a name, which users choose.
const maxJobText = 128

// parseSqueue reads what squeue prints for a question with that mark. here reports whether a person
// with this number belongs to the cluster. When there are too many jobs, those
// that run are listed before those that wait.
func parseSqueue(text, mark string, here func(uid int) bool) queue {
	var q queue
	var waiting []wire.Job
	_, text, _ = strings.Cut(text, mark) // what stands before the first is no job
	for record := range strings.SplitSeq(text, mark) {
		p := strings.SplitN(strings.TrimRight(record, "\r\n"), "|", 10)
		if len(p) != 10 || !jobID.MatchString(p[0]) || len(p[0]) > maxJobText {
			continue
		}
		j := wire.Job{
			ID: p[0], User: clip(p[2]), State: strings.ToLower(clip(p[3])), Nodes: clip(p[5]),
			Limit: clip(p[7]), Reason: clip(p[8]), Name: clip(p[9]),
		}
		j.Count, _ = strconv.Atoi(p[4])
		if j.Reason == "None" {
			j.Reason = ""
		}
		if uid, err := strconv.Atoi(p[1]); err == nil && uid >= firstUID && here != nil && !here(uid) {
			q.strangers = append(q.strangers, j.ID)
		}
		if j.State == "pending" {
			q.pending++
			if heldBySlurm(j.Reason) && oneJob.MatchString(j.ID) {
				q.held = append(q.held, j.ID)
			}
			waiting = append(waiting, j)
			continue
		}
		j.Started, _ = parseSlurmTime(p[6])
		q.running++
		q.active = append(q.active, j.ID)
		if j.State == "completing" {
			if q.completing == nil {
				q.completing = map[string]bool{}
			}
			q.completing[j.ID] = true
		}
		if j.State == "suspended" {
			if q.suspended == nil {
				q.suspended = map[string]bool{}
			}
			q.suspended[j.ID] = true
		}
		q.list = append(q.list, j)
	}
	newest(q.list)
	newest(waiting)
	q.list = q.list[:min(len(q.list), wire.MaxJobs)]
	q.list = append(q.list, waiting[:min(len(waiting), wire.MaxJobs-len(q.list))]...)
	newest(q.list)
	return q
}

func newest(list []wire.Job) {
	slices.SortStableFunc(list, func(a, b wire.Job) int { return jobNumber(b.ID) - jobNumber(a.ID) })
}

// jobNumber is the leading number of "12", "12_3" and "12_[4-9]".
func jobNumber(id string) int {
	end := strings.IndexFunc(id, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(id)
	}
	n, _ := strconv.Atoi(id[:end])
	return n
}

// clip makes text of a program fit to be sent on.
func clip(s string) string { return cleantext.Cut(cleantext.Line(s), maxJobText) }
