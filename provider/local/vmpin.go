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

// tune puts each vCPU of a virtual machine on the hardware thread that the plan has for it, and QEMU's other threads on
// those that are left over. It returns what the kernel refused; what holds is read back.
func (p *Provider) tune(ctx context.Context, s *supervisor.Supervisor, pl *muster.VMPlan) error {
	if !pl.Tuned {
		return nil
	}
	r, err := openReading(ctx, s, pl)
	if err != nil {
		return err
	}
	threads, err := threadsOf(r.pid)
	if err != nil {
		return err
	}
	var rest unix.CPUSet
	for _, c := range pl.HostCPUs {
		rest.Set(c)
	}
	var errs []error
	for _, tid := range threads {
		if slices.Contains(r.vcpus, tid) {
			continue
		}
		if err := unix.SchedSetaffinity(tid, &rest); err != nil && !errors.Is(err, unix.ESRCH) {
			errs = append(errs, fmt.Errorf("pin a thread of QEMU to %s: %w", cpulist.Format(pl.HostCPUs), err))
		}
	}
	for i, tid := range r.vcpus {
		host := r.hostOf(r.places[i])
		if host == nil {
			return fmt.Errorf("vCPU %d is at a place that is not planned: %+v", i, r.places[i])
		}
		var set unix.CPUSet
		set.Set(*host)
		if err := unix.SchedSetaffinity(tid, &set); err != nil {
			errs = append(errs, fmt.Errorf("pin vCPU %d to %d: %w", i, *host, err))
		}
	}
	return errors.Join(errs...)
}

// vmText is what holds of a virtual machine, for its console.
func vmText(f *muster.VMFacts) string {
	said := "accelerator kvm"
	if !f.KVM {
		said = "accelerator tcg: emulated"
	}
	if !f.Tuned {
		said += "; not pinned: tune is off"
	}
	for _, s := range f.Settings {
		switch {
		case !s.Holds:
			said += fmt.Sprintf("; %s: %s, not %s (%s)", s.Name, s.Found, s.Value, s.Cure)
		case s.Name == "vcpu-pins" && f.Tuned:
			said += "; vCPUs pinned: " + s.Found
		case s.Name == "huge-pages":
			said += "; huge pages: " + s.Value
		}
	}
	return said
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
