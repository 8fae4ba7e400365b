package lockfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// sign writes into the file who holds it: the number of this process and when it
// began, so that another process with the same number is not taken for it.
func sign(f *os.File) error {
	p, ok := look(os.Getpid())
	if !ok {
		return f.Truncate(0) // no /proc: whoever finds the file held waits, and then gives up
	}
	line := fmt.Appendf(nil, "%d %d\n", os.Getpid(), p.start)
	// In one write: a reader sees the old line or this one, which is no shorter than what is cut off next.
	if _, err := f.WriteAt(append(line, bytes.Repeat([]byte{'\n'}, 8)...), 0); err != nil {
		return err
	}
	return f.Truncate(int64(len(line)))
}

// holder is the process that wrote itself into the file, 0 when it has ended.
func holder(f *os.File) int {
	b, err := io.ReadAll(io.NewSectionReader(f, 0, 64))
	if err != nil {
		return 0
	}
	pid, start, ok := parseHolder(string(b))
	if !ok {
		return 0
	}
	if p, ok := look(pid); !ok || p.ending || p.start != start {
		return 0
	}
	return pid
}

func parseHolder(s string) (pid int, start uint64, ok bool) {
	line, _, whole := strings.Cut(s, "\n")
	first, second, two := strings.Cut(line, " ")
	pid, err := strconv.Atoi(first)
	start, err2 := strconv.ParseUint(second, 10, 64)
	return pid, start, whole && two && err == nil && err2 == nil && pid > 0
}

// process is what the kernel says of one.
type process struct {
	start  uint64 // clock ticks since the host booted
	ending bool   // it was killed, or has ended
}

func look(pid int) (process, bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return process{}, false
	}
	return parseStat(string(b))
}

// exiting is the flag of a process that is on its way out (PF_EXITING in the
// kernel's sched.h); killed is the bit of SIGKILL among the signals that wait
// for a process: on a busy host it may not have heard it yet.
const (
	exiting = 4
	killed  = 1 << 8
)

// parseStat reads fields 3, 9, 22 and 31 of proc_pid_stat(5). The name before
// them, in parentheses, may hold anything.
func parseStat(line string) (process, bool) {
	i := strings.LastIndexByte(line, ')')
	f := strings.Fields(line[i+1:])
	if i < 0 || len(f) < 29 {
		return process{}, false
	}
	flags, err := strconv.ParseUint(f[6], 10, 64)
	start, err2 := strconv.ParseUint(f[19], 10, 64)
	signals, err3 := strconv.ParseUint(f[28], 10, 64)
	ending := flags&exiting != 0 || signals&killed != 0 || f[0] == "Z" || f[0] == "X"
	return process{start: start, ending: ending}, errors.Join(err, err2, err3) == nil
}
