package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/cpulist"
	"github.com/muster-hpc/muster/vm/supervisor"
)

// tune puts each vCPU of a machine on a hardware thread of its own, of those of its slice, and reads
// back where the kernel has it. QEMU's other threads stay on all of them: a slice has no core to spare. It
// returns what holds of the machine, for people.
func (p *Provider) tune(ctx context.Context, s *supervisor.Supervisor, cpus []int, o muster.VMOptions, kvm bool) (string, error) {
	said := "accelerator tcg: emulated"
	if kvm {
		said = "accelerator kvm"
	}
	said += "; ordinary pages"
	if o.Untuned {
		return said + "; not pinned: tune is off", nil
	}
	st, err := s.Status(ctx)
	if err != nil {
		return "", err
	}
	answer, err := s.Command(ctx, "query-cpus-fast", nil)
	if err != nil {
		return "", err
	}
	vcpus, err := parseCPUThreads(answer)
	if err != nil {
		return "", err
	}
	if len(vcpus) != len(cpus) {
		return "", fmt.Errorf("QEMU has %d vCPUs for %d hardware threads", len(vcpus), len(cpus))
	}
	threads, err := threadsOf(st.QEMU)
	if err != nil {
		return "", err
	}
	where := slices.Sorted(slices.Values(cpus))
	var pairs []string
	for i, inside := range vcpus {
		t, ok := threads[inside]
		if !ok {
			return "", fmt.Errorf("the thread of vCPU %d is gone", i)
		}
		var set unix.CPUSet
		set.Set(where[i])
		if err := unix.SchedSetaffinity(t, &set); err != nil {
			return "", fmt.Errorf("pin vCPU %d to %d: %w", i, where[i], err)
		}
		got, err := taskStatus(st.QEMU, t, "Cpus_allowed_list")
		if err != nil {
			return "", err
		}
		if want := cpulist.Format([]int{where[i]}); got != want {
			return "", fmt.Errorf("vCPU %d is on %s, not on %s", i, got, want)
		}
		pairs = append(pairs, fmt.Sprintf("%d on %d", i, where[i]))
	}
	return said + "; vCPUs pinned: " + strings.Join(pairs, ", "), nil
}

// parseCPUThreads reads the threads of the vCPUs, in their order, as QEMU numbers them in its own
// namespace.
func parseCPUThreads(answer []byte) ([]int, error) {
	var list []map[string]any // QEMU's names are not ours
	if err := json.Unmarshal(answer, &list); err != nil {
		return nil, fmt.Errorf("QEMU's list of vCPUs: %w", err)
	}
	out := make([]int, len(list))
	for _, c := range list {
		index, ok := c["cpu-index"].(float64)
		thread, also := c["thread-id"].(float64)
		i, t := int(index), int(thread)
		if !ok || !also || i < 0 || i >= len(out) || t <= 0 || t > 1<<30 || out[i] != 0 {
			return nil, errors.New("QEMU's list of vCPUs is none")
		}
		out[i] = t
	}
	return out, nil
}

// threadsOf are a process's threads by their numbers in its own pid namespace.
func threadsOf(pid int) (map[int]int, error) {
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return nil, err
	}
	out := map[int]int{}
	for _, e := range list {
		tid, err := strconv.Atoi(e.Name())
		if err != nil {
			return nil, err
		}
		numbers, err := taskStatus(pid, tid, "NSpid")
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) {
			continue // it has ended
		}
		if err != nil {
			return nil, err
		}
		f := strings.Fields(numbers)
		if len(f) == 0 {
			continue
		}
		if inside, err := strconv.Atoi(f[len(f)-1]); err == nil {
			out[inside] = tid
		}
	}
	return out, nil
}

// taskStatus is a field of what the kernel says of a thread.
func taskStatus(pid, tid int, field string) (string, error) {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "task", strconv.Itoa(tid), "status"))
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, field+":"); ok {
			return strings.TrimSpace(rest), nil
		}
	}
	return "", fmt.Errorf("the kernel says nothing of %s", field)
}
