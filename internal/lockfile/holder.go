package lockfile

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/muster-hpc/muster/internal/procstat"
)

// sign writes into the file who holds it: the number of this process and when it
// began, so that another process with the same number is not taken for it.
func sign(f *os.File) error {
	p, err := procstat.Read(os.Getpid())
	if err != nil {
		return f.Truncate(0) // no /proc: whoever finds the file held waits, and then gives up
	}
	line := fmt.Appendf(nil, "%d %d\n", os.Getpid(), p.Start)
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
	if p, err := procstat.Read(pid); err != nil || p.Ending || p.Start != start {
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
