package local

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	vmhost "github.com/muster-hpc/muster/vm/host"
	"github.com/muster-hpc/muster/vm/hugepages"
	"github.com/muster-hpc/muster/vm/plan"
)

// planVM decides how a virtual machine of a part of this host is set up, and takes its huge pages. What it returns is
// noted. Tuning that this host does not allow is left out, and said; what was asked for by name is not.
func (p *Provider) planVM(m *machine, part part, o muster.VMOptions, kvm bool) (*vmNote, error) {
	source := vmhost.Source{FS: os.DirFS("/")}
	facts := hostFacts(source, m)
	facts.KVM = kvm
	o.Emulate = !kvm
	o.Save = o.NIC != muster.VMNICFunction && len(m.devices) == 0 // any other may be
	if n := len(facts.Given()); n < len(m.devices) {
		return nil, muster.Errorf(muster.EUnavailable, "machine %s has %d of its %d devices: the host does not see the others", m.id, n, len(m.devices)).Because(muster.ReasonBootFailed).
			WithHint("switch the host off and on, or leave them out of --vm-device")
	}
	// The pool of a host is shared with whatever else runs there: only who asks by name has pages of it.
	h := plan.Host{Topology: p.host.within(source.Topology(), part.cpus), VM: facts, Slice: true, Memory: part.memory, Ordinary: o.Pages == ""}
	n := &vmNote{}
	for {
		n.Plan = plan.Make(h, o)
		only := func(reason string) bool {
			return !slices.ContainsFunc(n.Plan.Lacks, func(l muster.VMLack) bool { return l.Reason != reason })
		}
		switch lacks := n.Plan.Lacks; {
		case len(lacks) == 0:
			err := p.takePages(m, n)
			if err == nil {
				return n, p.saveVMNote(m.id, n)
			}
			if o.Pages != "" {
				return nil, muster.Errorf(muster.EUnavailable, "no huge pages: %v", err).Because(muster.ReasonBootFailed).WithHint("%s", pagesCure(&n.Plan)).Wrap(err)
			}
			n.miss("huge-pages", planned(&n.Plan, "huge-pages:"), err.Error(), pagesCure(&n.Plan))
			h.Ordinary = true
		case only(muster.LackTopology) && !o.Untuned && o.Pages == "":
			n.miss("tune", "on", "off: "+lacks[0].Text, lacks[0].Cure)
			o.Untuned = true
		case only(muster.LackHugePages) && o.Pages == "" && !h.Ordinary:
			n.miss("huge-pages", "2 MiB", lacks[0].Text, lacks[0].Cure)
			h.Ordinary = true
		default:
			return nil, muster.Errorf(muster.EConflict, "the virtual machine cannot be set up: %s", lacks[0].Text).Because(muster.ReasonBootFailed).WithHint("%s", lacks[0].Cure)
		}
	}
}

// miss notes a setting that could not be made.
func (n *vmNote) miss(name, value, found, cure string) {
	n.Missed = append(n.Missed, muster.VMFact{Name: name, Value: value, Found: found, Cure: cure})
}

// planned are the values of the settings that begin so.
func planned(pl *muster.VMPlan, prefix string) string {
	var list []string
	for _, s := range pl.Settings {
		if strings.HasPrefix(s.Name, prefix) {
			list = append(list, s.Value)
		}
	}
	return strings.Join(list, "; ")
}

// pagesCure is how a host comes to have the huge pages of a plan.
func pagesCure(pl *muster.VMPlan) string {
	var list []string
	for _, n := range pl.MemoryNodes {
		if n.Host != nil && n.Pages > 0 {
			list = append(list, fmt.Sprintf("%d:%d", *n.Host, n.Pages))
		}
	}
	size := "2M"
	if pl.PageSize == 1<<30 {
		size = "1G"
	}
	return fmt.Sprintf("start the host with the kernel arguments hugepagesz=%s hugepages=%s, which sets them aside before memory is in pieces; or free memory of the host", size, strings.Join(list, ","))
}

// takePages takes the huge pages of a plan, each change noted before.
func (p *Provider) takePages(m *machine, n *vmNote) error {
	var wants []hugepages.Want
	mine := map[hugepages.Want]int64{}
	for _, v := range n.Plan.MemoryNodes {
		if v.Host != nil && v.Pages > 0 {
			wants = append(wants, hugepages.Want{Node: *v.Host, Size: n.Plan.PageSize, Pages: v.Pages})
			mine[hugepages.Want{Node: *v.Host, Size: n.Plan.PageSize}] = v.Pages
		}
	}
	if len(wants) == 0 {
		return nil
	}
	p.mu.Lock()
	if p.promised == nil {
		p.promised = map[muster.MachineID]map[hugepages.Want]int64{}
	}
	p.promised[m.id] = mine
	p.mu.Unlock()
	pending := func(node int, size int64) (sum int64) {
		p.mu.Lock()
		defer p.mu.Unlock()
		for id, list := range p.promised {
			if id != m.id {
				sum += list[hugepages.Want{Node: node, Size: size}]
			}
		}
		return sum
	}
	err := hugepages.This().Take(wants, pending, func(list []hugepages.Taken) error {
		n.Pages = list
		return p.saveVMNote(m.id, n)
	})
	if err != nil {
		p.kept(m)
	}
	return err
}

// kept ends the promise of free huge pages to a machine: its QEMU has them, or there will be none.
func (p *Provider) kept(m *machine) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.promised, m.id)
}

// within is the part of a topology that some hardware threads are; nil: of what the host's kernel says of their
// sockets and cores.
func (h *host) within(t *muster.Topology, cpus []int) muster.Topology {
	if t == nil {
		return h.flat(cpus)
	}
	out := muster.Topology{Source: t.Source}
	for _, pkg := range t.Packages {
		p := muster.Package{ID: pkg.ID}
		for _, node := range pkg.Nodes {
			n := muster.MemoryNode{ID: node.ID, Memory: node.Memory}
			for _, g := range node.Groups {
				mine := muster.CoreGroup{Caches: g.Caches}
				for _, core := range g.Cores {
					if threads := slices.DeleteFunc(slices.Clone(core), func(c int) bool { return !slices.Contains(cpus, c) }); len(threads) > 0 {
						mine.Cores = append(mine.Cores, threads)
					}
				}
				if len(mine.Cores) > 0 {
					n.Groups = append(n.Groups, mine)
				}
			}
			if len(n.Groups) > 0 {
				p.Nodes = append(p.Nodes, n)
			}
		}
		if len(p.Nodes) > 0 {
			out.Packages = append(out.Packages, p)
		}
	}
	return out
}

// flat is a topology without caches.
func (h *host) flat(cpus []int) muster.Topology {
	type key struct{ socket, node int }
	cores := map[key]map[int][]int{}
	for _, c := range h.cpus {
		if slices.Contains(cpus, c.id) {
			k := key{c.socket, c.node}
			if cores[k] == nil {
				cores[k] = map[int][]int{}
			}
			cores[k][c.core] = append(cores[k][c.core], c.id)
		}
	}
	var keys []key
	for k := range cores {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b key) int { return cmp.Or(a.socket-b.socket, a.node-b.node) })
	out := muster.Topology{Source: "sysfs"}
	for _, k := range keys {
		var g muster.CoreGroup
		for _, threads := range cores[k] {
			g.Cores = append(g.Cores, threads)
		}
		slices.SortFunc(g.Cores, func(a, b []int) int { return a[0] - b[0] })
		if last := len(out.Packages) - 1; last < 0 || out.Packages[last].ID != k.socket {
			out.Packages = append(out.Packages, muster.Package{ID: k.socket})
		}
		pkg := &out.Packages[len(out.Packages)-1]
		pkg.Nodes = append(pkg.Nodes, muster.MemoryNode{ID: k.node, Groups: []muster.CoreGroup{g}})
	}
	return out
}

// pagesCharged reports whether the kernel charges huge pages to control groups' memory.
func pagesCharged(mountinfo []byte) bool {
	return bytes.Contains(mountinfo, []byte("memory_hugetlb_accounting"))
}

// vmMemory is how much memory the control group of a virtual machine may have: what lies in huge pages is charged to none.
func (p *Provider) vmMemory(part part, pl *muster.VMPlan) (int64, error) {
	if pl.PageSize == 0 {
		return part.memory, nil
	}
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return 0, err
	}
	if !p.groups.old() && pagesCharged(b) {
		return part.memory, nil
	}
	if left := part.memory - pl.Memory; left > 0 {
		return left, nil
	}
	return 0, errors.New("nothing is left of the memory for QEMU")
}
