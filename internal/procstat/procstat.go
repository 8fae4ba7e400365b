// Package procstat reads what the kernel says of a process in /proc/PID/stat: which one
// it is, and whether it still lives.
package procstat

import (
	"errors"
	"os"
	"strconv"
	"strings"
)

// Stat is what tells a process from every other, and whether it lives.
type Stat struct {
	// Start is when it began, in clock ticks since the host booted: with the number it
	// names a process for ever.
	Start uint64
	// Ending: it was killed or is on its way out, and may still hold what it had open.
	Ending bool
	// Ended: only its exit status is left.
	Ended bool
}

// Read reads the stat of a process of this host. Returns os.ErrNotExist when there is
// none of that number.
func Read(pid int) (Stat, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return Stat{}, err
	}
	return Parse(string(b))
}

// exiting is the flag of a process that is on its way out (PF_EXITING in the kernel's
// sched.h); killed is the bit of SIGKILL among the signals that wait for a process: on a
// busy host it may not have heard it yet.
const (
	exiting = 4
	killed  = 1 << 8
)

// Parse reads fields 3, 9, 22 and 31 of proc_pid_stat(5). The name before them, in
// parentheses, may hold anything.
func Parse(line string) (Stat, error) {
	i := strings.LastIndexByte(line, ')')
	f := strings.Fields(line[i+1:])
	if i < 0 || len(f) < 29 || len(f[0]) != 1 {
		return Stat{}, errors.New("no line of /proc/PID/stat")
	}
	flags, err := strconv.ParseUint(f[6], 10, 64)
	start, err2 := strconv.ParseUint(f[19], 10, 64)
	signals, err3 := strconv.ParseUint(f[28], 10, 64)
	if err := errors.Join(err, err2, err3); err != nil {
		return Stat{}, err
	}
	ended := f[0] == "Z" || f[0] == "X"
	return Stat{Start: start, Ended: ended, Ending: ended || flags&exiting != 0 || signals&killed != 0}, nil
}
