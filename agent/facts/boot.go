package facts

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster"
)

// hz is the unit of times in /proc: USER_HZ, 100 on every port of Linux.
const hz = 100

// BootStages returns when the kernel started (left out on a slice of a host,
// where it is the host's) and when init did.
func (s Source) BootStages() []muster.Stage {
	var up unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &up) != nil {
		return nil
	}
	kernel := time.Now().Add(-time.Duration(up.Nano())).UTC()
	var out []muster.Stage
	if !Slice(s.Root) {
		out = append(out, muster.Stage{Name: "kernel", At: kernel})
	}
	if ticks, ok := startTicks(s.file("proc/1/stat")); ok {
		out = append(out, muster.Stage{Name: "init", At: kernel.Add(ticks)})
	}
	return out
}

// startTicks reads when a process began after the boot, to a hundredth of a
// second, from its /proc/PID/stat: field 22, counted from the name's bracket.
func startTicks(b []byte) (time.Duration, bool) {
	i := bytes.LastIndexByte(b, ')')
	if i < 0 {
		return 0, false
	}
	w := strings.Fields(string(b[i+1:]))
	if len(w) < 20 {
		return 0, false
	}
	n, err := strconv.ParseInt(w[19], 10, 64)
	if err != nil || n < 0 || n > 1<<40 {
		return 0, false
	}
	return time.Duration(n) * time.Second / hz, true
}

// BootID names this boot of the kernel.
func (s Source) BootID() string {
	id := s.text("proc/sys/kernel/random/boot_id")
	if len(id) > 64 {
		return ""
	}
	return id
}
