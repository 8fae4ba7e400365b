package local

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/cpulist"
	"github.com/muster-hpc/muster/vm/supervisor"
)

// vmReading reads back how a virtual machine is set up.
type vmReading struct {
	s    *supervisor.Supervisor
	plan *muster.VMPlan
	pid  int // QEMU
	dir  string
	// vcpus are the threads of the vCPUs, in QEMU's order; places are theirs in the virtual machine.
	vcpus  []int
	places []muster.VMCPU
	out    []muster.VMFact
}

// readVM reads back every setting of a plan that a host can see: from /proc and /sys where it can be, or by the word
// of QEMU. What cannot be read does not hold.
func (p *Provider) readVM(ctx context.Context, s *supervisor.Supervisor, n *vmNote) (*muster.VMFacts, error) {
	r, err := openReading(ctx, s, &n.Plan)
	if err != nil {
		return nil, err
	}
	r.out = slices.Clone(n.Missed)
	kvm := r.accelerator(ctx)
	r.processor()
	r.pins()
	r.siblings()
	r.hostThreads()
	r.topology()
	r.memory()
	r.pages()
	r.merging()
	r.balloon(ctx)
	if n.Function == nil {
		r.queues()
	} else {
		r.function(p.functions, n.Function)
	}
	for _, d := range n.Plan.Devices {
		r.device(p.devices.Host, d)
	}
	if n.Plan.Memlock > 0 {
		r.locked()
	}
	return &muster.VMFacts{At: p.cfg.Clock.Now(), KVM: kvm, Tuned: n.Plan.Tuned, Settings: r.out}, nil
}

func openReading(ctx context.Context, s *supervisor.Supervisor, pl *muster.VMPlan) (*vmReading, error) {
	st, err := s.Status(ctx)
	if err != nil {
		return nil, err
	}
	r := &vmReading{s: s, plan: pl, pid: st.QEMU, dir: filepath.Join("/proc", strconv.Itoa(st.QEMU))}
	answer, err := s.Command(ctx, "query-cpus-fast", nil)
	if err != nil {
		return nil, err
	}
	inside, err := parseCPUThreads(answer)
	if err != nil {
		return nil, err
	}
	if r.places, err = parsePlaces(answer); err != nil {
		return nil, err
	}
	if len(inside) != len(pl.CPUs) {
		return nil, fmt.Errorf("QEMU has %d vCPUs, and %d are planned", len(inside), len(pl.CPUs))
	}
	threads, err := threadsOf(r.pid)
	if err != nil {
		return nil, err
	}
	for i, t := range inside {
		tid, ok := threads[t]
		if !ok {
			return nil, fmt.Errorf("the thread of vCPU %d is gone", i)
		}
		r.vcpus = append(r.vcpus, tid)
	}
	return r, nil
}

// add adds what was found of a setting; an empty value is the plan's.
func (r *vmReading) add(name, value, found, read string, holds bool, cure string) {
	if value == "" {
		value = planned(r.plan, name)
	}
	if holds {
		cure = ""
	}
	r.out = append(r.out, muster.VMFact{Name: name, Value: value, Found: found, Read: read, Holds: holds, Cure: cure})
}

// again is the cure of what nothing but a fault explains.
const again = "stop the node and start it again; if it stays so, the log of its supervisor on the server says why"

func (r *vmReading) accelerator(ctx context.Context) bool {
	value := "kvm"
	if r.plan.Emulated {
		value = "tcg: emulated"
	}
	answer, err := r.s.Command(ctx, "query-kvm", nil)
	var is struct {
		Enabled bool `json:"enabled"`
	}
	if err == nil {
		err = json.Unmarshal(answer, &is)
	}
	found := "tcg: emulated"
	switch {
	case err != nil:
		found = err.Error()
	case is.Enabled:
		found = "kvm"
	}
	r.add("accelerator", value, found, "QEMU: query-kvm", found == value, again)
	return err == nil && is.Enabled
}

// processor is the model of which QEMU was told.
func (r *vmReading) processor() {
	b, err := os.ReadFile(filepath.Join(r.dir, "cmdline"))
	found := ""
	if err != nil {
		found = err.Error()
	}
	words := strings.Split(string(b), "\x00")
	if i := slices.Index(words, "-cpu"); i >= 0 && i+1 < len(words) {
		found = words[i+1]
	}
	want := strings.Join(append([]string{r.plan.CPUModel}, r.plan.CPUFeatures...), ",")
	r.add("cpu", want, found, "/proc/{pid}/cmdline", found == want, again)
}

// hostOf is the hardware thread of the plan for the vCPU at a place.
func (r *vmReading) hostOf(at muster.VMCPU) *int {
	for _, c := range r.plan.CPUs {
		if c.Socket == at.Socket && c.Die == at.Die && c.Core == at.Core && c.Thread == at.Thread {
			return c.Host
		}
	}
	return nil
}

func (r *vmReading) pins() {
	all, err := taskStatus(r.pid, r.pid, "Cpus_allowed_list")
	var found []string
	holds := err == nil
	for i, tid := range r.vcpus {
		on, err := taskStatus(r.pid, tid, "Cpus_allowed_list")
		if err != nil {
			on = err.Error()
		}
		want := all
		if host := r.hostOf(r.places[i]); host != nil {
			want = cpulist.Format([]int{*host})
		}
		holds = holds && on == want
		found = append(found, fmt.Sprintf("%d:%s", i, on))
	}
	r.add("vcpu-pins", "", strings.Join(found, " "), "/proc/{pid}/task/{tid}/status", holds, "leave its processors to it: another program of the host has moved its threads, or they are offline")
}

// siblings looks whether a core of the virtual machine has hardware threads of others.
func (r *vmReading) siblings() {
	if !r.plan.Tuned {
		return
	}
	mine := map[int]bool{}
	for _, c := range r.plan.CPUs {
		if c.Host != nil {
			mine[*c.Host] = true
		}
	}
	foreign := map[int]bool{}
	found := cpulist.Format(slices.Sorted(maps.Keys(mine)))
	holds := true
	for c := range mine {
		b, err := os.ReadFile(fmt.Sprintf("/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", c))
		list, also := cpulist.Parse(strings.TrimSpace(string(b)))
		if err != nil || also != nil {
			found, holds = "not known", false
			continue
		}
		for _, s := range list {
			if !mine[s] {
				foreign[s] = true
			}
		}
	}
	if len(foreign) > 0 {
		found, holds = "others have "+cpulist.Format(slices.Sorted(maps.Keys(foreign)))+" of the same cores", false
	}
	r.add("siblings", "", found, "/sys/devices/system/cpu/cpu{host}/topology/thread_siblings_list", holds, "make the host's local machines of whole cores: an even number of hardware threads each, where a core has two")
}

// hostThreads are QEMU's others than those of vCPUs.
func (r *vmReading) hostThreads() {
	if !r.plan.Tuned {
		return
	}
	want := cpulist.Format(r.plan.HostCPUs)
	where := map[string]int{}
	threads, err := threadsOf(r.pid)
	if err == nil {
		for _, tid := range threads {
			if slices.Contains(r.vcpus, tid) {
				continue
			}
			if on, err := taskStatus(r.pid, tid, "Cpus_allowed_list"); err == nil {
				where[on]++
			}
		}
	}
	found := slices.Sorted(maps.Keys(where))
	r.add("host-threads", "", strings.Join(found, "; "), "/proc/{pid}/task/{tid}/status", len(where) == 1 && where[want] > 0, "leave its processors to it: another program of the host has moved its threads, or they are offline")
}

// topology is where each vCPU is in the virtual machine, by QEMU's word.
func (r *vmReading) topology() {
	want := map[muster.VMCPU]bool{}
	for _, c := range r.plan.CPUs {
		c.Host = nil
		want[c] = true
	}
	count := [4]map[[4]int]bool{{}, {}, {}, {}}
	holds := true
	for _, c := range r.places {
		holds = holds && want[c]
		for i, at := range [][4]int{{c.Socket}, {c.Socket, c.Die}, {c.Socket, c.Die, c.Core}, {c.Socket, c.Die, c.Core, c.Thread}} {
			count[i][at] = true
		}
	}
	found := fmt.Sprintf("%d vCPUs in %d cores, %d dies, %d sockets", len(count[3]), len(count[2]), len(count[1]), len(count[0]))
	r.add("topology", "", found, "QEMU: query-cpus-fast", holds && len(count[3]) == len(want), again)
}

// merging looks for memory that the kernel may merge with that of others.
func (r *vmReading) merging() {
	f, err := os.Open(filepath.Join(r.dir, "smaps"))
	if err != nil {
		r.add("page-merging", "", err.Error(), "/proc/{pid}/smaps", false, again)
		return
	}
	defer func() { _ = f.Close() }()
	n, err := mergeable(f)
	found := "no VmFlags with mg"
	if err != nil {
		found = err.Error()
	} else if n > 0 {
		found = fmt.Sprintf("%d areas with mg", n)
	}
	r.add("page-merging", "", found, "/proc/{pid}/smaps", err == nil && n == 0, again)
}

// mergeable counts the areas of a process's memory that may be merged.
func mergeable(smaps io.Reader) (n int, err error) {
	in := bufio.NewScanner(smaps)
	in.Buffer(nil, 64<<10)
	for in.Scan() {
		if rest, ok := bytes.CutPrefix(in.Bytes(), []byte("VmFlags:")); ok && slices.Contains(strings.Fields(string(rest)), "mg") {
			n++
		}
	}
	return n, in.Err()
}

func (r *vmReading) balloon(ctx context.Context) {
	_, err := r.s.Command(ctx, "query-balloon", nil)
	found := "there is one"
	holds := err != nil && ctx.Err() == nil // it refuses to speak of what there is not
	switch {
	case holds:
		found = "none"
	case err != nil:
		found = err.Error()
	}
	r.add("balloon", "", found, "QEMU: query-balloon", holds, again)
}

// queues counts the queues of each card: QEMU has a descriptor for each.
func (r *vmReading) queues() {
	cards := map[string]int{}
	list, err := filepath.Glob(filepath.Join(r.dir, "fdinfo", "*"))
	if err == nil {
		for _, path := range list {
			b, err := os.ReadFile(path)
			if err != nil {
				continue // it is closed by now
			}
			for line := range strings.Lines(string(b)) {
				if name, ok := strings.CutPrefix(line, "iff:"); ok {
					cards[strings.TrimSpace(name)]++
				}
			}
		}
	}
	holds := len(cards) > 0
	var found []string
	for _, name := range slices.Sorted(maps.Keys(cards)) {
		holds = holds && cards[name] == max(1, r.plan.NIC.Queues)
		found = append(found, fmt.Sprintf("%d of tap %s", cards[name], name))
	}
	r.add("nic", "", strings.Join(found, ", "), "/proc/{pid}/fdinfo", holds, again)
}

// parsePlaces reads where the vCPUs are in the virtual machine, in QEMU's order.
func parsePlaces(answer []byte) ([]muster.VMCPU, error) {
	var list []map[string]any // QEMU's names are not ours
	if err := json.Unmarshal(answer, &list); err != nil {
		return nil, fmt.Errorf("QEMU's list of vCPUs: %w", err)
	}
	out := make([]muster.VMCPU, len(list))
	for _, c := range list {
		index, ok := c["cpu-index"].(float64)
		i := int(index)
		if !ok || i < 0 || i >= len(out) {
			return nil, fmt.Errorf("QEMU's list of vCPUs is none: number %v of %d", c["cpu-index"], len(out))
		}
		props, _ := c["props"].(map[string]any)
		at := func(name string) int {
			n, _ := props[name].(float64) // 0 where there is one only
			return int(n)
		}
		out[i] = muster.VMCPU{Socket: at("socket-id"), Die: at("die-id"), Core: at("core-id"), Thread: at("thread-id"), MemoryNode: at("node-id")}
	}
	return out, nil
}
