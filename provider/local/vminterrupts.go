package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/cpulist"
)

// A guest's driver asks for the interrupts of its function long after QEMU was started, one after the other, and for others
// when it is loaded again: they are looked for often at first, and seldom later.
const (
	interruptTime   = time.Minute
	interruptPause  = time.Second
	interruptSeldom = 10 * time.Second
)

// placeInterrupts has the interrupts of a virtual machine's function taken where its plan says, whenever there are new ones,
// and adds what holds to its facts.
func (p *Provider) placeInterrupts(m *machine, n *vmNote) {
	if n.Function == nil || len(n.Plan.NIC.InterruptCPUs) == 0 {
		return
	}
	m.mu.Lock()
	rec := m.rec
	m.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.following.Go(func() {
		var before []string
		pause := time.NewTicker(interruptPause)
		defer pause.Stop()
		for began := time.Now(); ; {
			select {
			case <-p.ended:
				return
			case <-pause.C:
			}
			m.mu.Lock()
			gone := m.rec != rec || m.ended || m.virtual == nil
			m.mu.Unlock()
			if gone {
				return
			}
			if list := irqsOf("/", n.Function.Address); len(list) > 0 && !slices.Equal(list, before) {
				p.addFact(m, rec, placed("/", list, n.Plan.NIC.InterruptCPUs))
				before = list
			}
			if time.Since(began) > interruptTime {
				pause.Reset(interruptSeldom)
			}
		}
	})
}

// addFact adds what was found of a setting to those of the boot of a record.
func (p *Provider) addFact(m *machine, rec *record, f muster.VMFact) {
	m.mu.Lock()
	if m.rec == rec && m.virtual != nil {
		facts := *m.virtual // others have the old one
		facts.Settings = append(slices.DeleteFunc(slices.Clone(facts.Settings), func(o muster.VMFact) bool { return o.Name == f.Name }), f)
		m.virtual = &facts
	}
	m.mu.Unlock()
	p.changed(m.id)
}

// irqsOf are the interrupts of a device, below root, that somebody handles. The kernel has a directory for those alone: VFIO
// allocates more of them than a guest's driver has asked for yet.
func irqsOf(root, address string) []string {
	list, err := os.ReadDir(filepath.Join(root, "sys/bus/pci/devices", address, "msi_irqs"))
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range list {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		if _, err := os.Stat(filepath.Join(root, "proc/irq", e.Name())); err == nil {
			out = append(out, e.Name())
		}
	}
	return out
}

// placed places interrupts on hardware threads, and reads back where they are taken.
func placed(root string, irqs []string, cpus []int) muster.VMFact {
	want := cpulist.Format(cpus)
	f := muster.VMFact{Name: "nic-interrupts", Value: want, Read: "/proc/irq/{irq}/effective_affinity_list", Holds: true}
	var found []string
	for _, irq := range irqs {
		dir := filepath.Join(root, "proc/irq", irq)
		err := os.WriteFile(filepath.Join(dir, "smp_affinity_list"), []byte(want), 0o644)
		b, also := os.ReadFile(filepath.Join(dir, "effective_affinity_list"))
		on := strings.TrimSpace(string(b))
		list, bad := cpulist.Parse(on)
		inside := len(list) > 0 && !slices.ContainsFunc(list, func(c int) bool { return !slices.Contains(cpus, c) })
		if err = errors.Join(err, also, bad); err != nil {
			on = err.Error()
		}
		f.Holds = f.Holds && err == nil && inside
		found = append(found, fmt.Sprintf("%s:%s", irq, on))
	}
	f.Found = strings.Join(found, " ")
	if !f.Holds {
		f.Cure = "end whatever else places interrupts on the host, such as irqbalance, and start the node again"
	}
	return f
}
