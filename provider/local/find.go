package local

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/procstat"
)

// processOf finds a process whose owner lies in a range of IDs, or returns 0.
// Ranges are drawn by the name of the instance, and two servers of a host may
// have drawn the same: what lives in the control groups of another instance is
// not of ours, because no process leaves the groups of its machine.
func processOf(instance string, from, to int) (int, error) {
	return eachProcess(func(n string) (bool, error) {
		st, err := os.Stat("/proc/" + n)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		s, ok := st.Sys().(*syscall.Stat_t)
		return ok && int(s.Uid) >= from && int(s.Uid) < to && !zombie(n) && !elsewhere(n, instance), nil
	})
}

// eachProcess looks at the processes of this host, by their numbers as text,
// until it is the one; 0 when none is.
func eachProcess(is func(pid string) (bool, error)) (int, error) {
	d, err := os.Open("/proc")
	if err != nil {
		return 0, err
	}
	defer func() { _ = d.Close() }()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return 0, err
	}
	for _, n := range names {
		pid, err := strconv.Atoi(n)
		if err != nil {
			continue
		}
		found, err := is(n)
		if err != nil {
			return 0, err
		}
		if found {
			return pid, nil
		}
	}
	return 0, nil
}

// zombie reports whether only the exit status of a process is left.
func zombie(pid string) bool {
	n, err := strconv.Atoi(pid)
	if err != nil {
		return true
	}
	s, err := procstat.Read(n)
	return err != nil || s.Ended
}

// elsewhere reports whether a process lives in the control groups of another
// instance.
func elsewhere(pid, instance string) bool {
	b, err := os.ReadFile("/proc/" + pid + "/cgroup")
	if err != nil {
		return true // it is gone
	}
	return inOtherInstance(string(b), instance)
}

// inOtherInstance judges the text of /proc/PID/cgroup. The first part of a path
// that names an instance decides: below it, names are the machine's own.
func inOtherInstance(text, instance string) bool {
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '/' || r == '\n' }) {
		if strings.HasPrefix(part, "muster-") {
			return strings.TrimSuffix(part, ".scope") != instance
		}
	}
	return false
}

// machineIndex reads the index from a machine's ID.
func machineIndex(id muster.MachineID) (int, bool) {
	rest, ok := strings.CutPrefix(string(id), "local-")
	if !ok || len(rest) > 5 {
		return 0, false
	}
	n, err := strconv.Atoi(rest)
	if err != nil || n < 1 || machineID(n-1) != id {
		return 0, false
	}
	return n - 1, true
}
