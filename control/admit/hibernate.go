package admit

import (
	"github.com/muster-hpc/muster"
)

// hibernates adds what a machine needs in order to write its memory to a disk of its own and go on from there.
func (b *builder) hibernates(spec muster.Spec, providers muster.Providers) {
	if spec.OnPause != muster.PauseHibernate {
		return
	}
	for _, l := range HibernationLacks() {
		b.add(check{
			reason: l.Reason, head: true, text: l.Text, change: "leave out on_pause: hibernate, or write another",
			pass: func(m *muster.Machine) bool { return !l.Is(m, providers.For(m.Provider, spec.VM)) },
		})
	}
}

// HibernationLack is a reason for which a machine cannot hibernate.
type HibernationLack struct {
	Reason, Text string
	Is           func(*muster.Machine, muster.Capabilities) bool
}

// HibernationLacks lists them, in the order in which they are tried.
func HibernationLacks() []HibernationLack {
	return []HibernationLack{
		{ReasonHibernate, "do not hibernate: they are no whole machines, or the site does not allow it", func(_ *muster.Machine, c muster.Capabilities) bool { return !c.Hibernates }},
		{ReasonHibernateDevices, "have RDMA cards or accelerators, whose state does not survive hibernation", func(m *muster.Machine, _ muster.Capabilities) bool {
			for _, n := range m.Facts.NICs {
				if n.Kind == "infiniband" {
					return true
				}
			}
			return len(m.Facts.Accelerators) > 0
		}},
		{ReasonHibernateLocked, "have kernels that are locked down by Secure Boot, which forbids hibernation", func(m *muster.Machine, _ muster.Capabilities) bool { return m.Facts.Lockdown != "" }},
		{ReasonHibernateDisk, "have no disk of their own that is twice as large as their memory", func(m *muster.Machine, _ muster.Capabilities) bool {
			_, _, ok := m.Facts.MemoryDisk()
			return !ok
		}},
	}
}
