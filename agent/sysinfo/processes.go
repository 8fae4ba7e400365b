package sysinfo

import (
	"cmp"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-hpc/muster/wire"
)

// measuring are the programs that measure, as the kernel names them.
func measuring() []string {
	return []string{"muster-probe", "muster-agent", "mpirun", "prterun", "prted", "orted", "xhpl", "fio", "iperf3"}
}

// mostProcesses bounds the work of looking.
const mostProcesses = 1 << 15

// processes are those that used the processors most, without some by name.
func (s Source) processes(without []string) []wire.ProcessTime {
	dir, err := os.Open(s.path("proc"))
	if err != nil {
		return nil
	}
	defer func() { _ = dir.Close() }()
	var list []wire.ProcessTime
	for range mostProcesses / 256 {
		names, err := dir.Readdirnames(256)
		for _, n := range names {
			pid, bad := strconv.Atoi(n)
			if bad != nil || pid < 1 {
				continue
			}
			p, ok := parseProcess(s.file("proc/" + n + "/stat"))
			if !ok || p.Seconds == 0 || slices.Contains(without, p.Name) {
				continue
			}
			p.PID = pid
			list = append(list, p)
		}
		if err != nil {
			break
		}
	}
	slices.SortFunc(list, func(a, b wire.ProcessTime) int {
		return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(a.PID, b.PID))
	})
	return list[:min(len(list), wire.MaxProcesses)]
}

// parseProcess reads /proc/PID/stat. The name in brackets may hold anything, so
// the fields are counted from the last bracket. The time is the process's own:
// what its dead children used is not.
func parseProcess(text string) (wire.ProcessTime, bool) {
	open, shut := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')')
	if open < 0 || shut < open {
		return wire.ProcessTime{}, false
	}
	w := strings.Fields(text[shut+1:])
	if len(w) < 20 { // user time is field 14, the start field 22; the first here is 3
		return wire.ProcessTime{}, false
	}
	p := wire.ProcessTime{Name: text[open+1 : shut], Started: float64(count(w[19])) / hz, Seconds: float64(count(w[11])+count(w[12])) / hz}
	if len(w) > 21 {
		p.Memory = min(count(w[21]), 1<<40) * int64(os.Getpagesize())
	}
	return p, true
}
