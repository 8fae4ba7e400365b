package jobend

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Ender ends the processes of one job.
type Ender struct {
	Job int // SLURM_JOB_ID
	UID int // whose it was
	// Proc is where the process table is; "" for /proc.
	Proc string
	// Kill ends a process that the table has at PID; nil for SIGKILL.
	Kill func(pid int) error
}

// rounds bound the chase of a job that forks faster than it is looked at.
const (
	rounds = 50
	pause  = 10 * time.Millisecond
)

// End ends what is left of the job. It looks only at what the scheduler started, which is in
// the control group of its daemon, as this program is: shells of people who logged in are
// none of it. What belongs to another job of the same person, which runs here, stays.
func (e Ender) End() error {
	for range rounds {
		left, err := e.left()
		if err != nil || len(left) == 0 {
			return err
		}
		for _, pid := range left {
			if err := e.kill(pid); err != nil {
				return err
			}
		}
		time.Sleep(pause)
	}
	return fmt.Errorf("processes of job %d come again as fast as they are ended", e.Job)
}

func (e Ender) kill(pid int) error {
	if e.Kill != nil {
		return e.Kill(pid)
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil // it has ended
	}
	defer func() { _ = unix.Close(fd) }()
	// Looked at again with the handle held: the number may have passed to another process.
	if p, ok := e.read(pid); !ok || p.uid != e.UID {
		return nil
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && err != unix.ESRCH {
		return fmt.Errorf("process %d of job %d cannot be ended: %w", pid, e.Job, err)
	}
	return nil
}

// process is what counts of one.
type process struct {
	pid, uid int
	group    string // its control group
	job      int    // by its environment; 0: that says nothing
}

// left are the processes to end.
func (e Ender) left() ([]int, error) {
	own, ok := e.read(os.Getpid())
	if e.Proc != "" {
		own, ok = e.read(1)
	}
	if !ok || own.group == "" {
		return nil, fmt.Errorf("the control group of the scheduler cannot be read")
	}
	entries, err := os.ReadDir(e.proc())
	if err != nil {
		return nil, err
	}
	running := map[int]bool{} // jobs that have a step here
	var all []process
	for _, d := range entries {
		pid, err := strconv.Atoi(d.Name())
		if err != nil {
			continue
		}
		if job := e.stepOf(pid); job > 0 {
			running[job] = true
			continue
		}
		if p, ok := e.read(pid); ok && p.uid == e.UID && p.group == own.group {
			all = append(all, p)
		}
	}
	others := false // the person has another job here
	for _, p := range all {
		others = others || p.job != e.Job && running[p.job]
	}
	var out []int
	for _, p := range all {
		if p.job == e.Job || !others || p.job != 0 && !running[p.job] {
			out = append(out, p.pid)
		}
	}
	return out, nil
}

func (e Ender) proc() string {
	if e.Proc != "" {
		return e.Proc
	}
	return "/proc"
}

func (e Ender) file(pid int, name string) []byte {
	b, _ := os.ReadFile(filepath.Join(e.proc(), strconv.Itoa(pid), name)) // it may have ended
	return b
}

// stepOf is the job of a slurmstepd, which says so in its title: "slurmstepd: [7.batch]".
// Users' programs can have the same title, and not its owner.
func (e Ender) stepOf(pid int) int {
	title, ok := bytes.CutPrefix(e.file(pid, "cmdline"), []byte("slurmstepd: ["))
	if !ok {
		return 0
	}
	if p, ok := e.read(pid); !ok || p.uid != 0 {
		return 0
	}
	number, _, _ := strings.Cut(string(title), ".")
	job, _ := strconv.Atoi(number)
	return job
}

// read reads a process; ok is false when it has ended.
func (e Ender) read(pid int) (process, bool) {
	p := process{pid: pid, uid: -1}
	for line := range strings.Lines(string(e.file(pid, "status"))) {
		key, value, _ := strings.Cut(line, ":")
		f := strings.Fields(value)
		switch {
		case len(f) == 0:
		case key == "State" && (f[0] == "Z" || f[0] == "X"):
			return p, false
		case key == "Uid":
			p.uid, _ = strconv.Atoi(f[0])
		}
	}
	if p.uid < 0 {
		return p, false
	}
	for line := range strings.Lines(string(e.file(pid, "cgroup"))) {
		if group, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			p.group = group
		}
	}
	for _, v := range bytes.Split(e.file(pid, "environ"), []byte{0}) {
		if id, ok := bytes.CutPrefix(v, []byte("SLURM_JOB_ID=")); ok {
			p.job, _ = strconv.Atoi(string(id))
		}
	}
	return p, true
}
