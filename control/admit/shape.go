package admit

import (
	"github.com/muster-hpc/muster"
)

// shape adds what a machine needs in order to give a node a part of itself, and to hold its
// links to a rate.
func (b *builder) shape(spec muster.Spec, providers muster.Providers) {
	if s := spec.Shape; s != nil {
		if s.Cores > 0 {
			b.add(check{
				reason: ReasonShapeCores,
				pass:   func(m *muster.Machine) bool { return HasCores(&m.Facts, s) },
				text:   "have fewer cores than the shape, or not so many in its sockets",
				change: "ask for a shape of fewer cores, or of more sockets",
			})
		}
		if want := s.Memory(); want > 0 {
			b.add(check{
				reason: ReasonShapeMemory,
				pass:   func(m *muster.Machine) bool { return m.Facts.Memory >= want },
				text:   "have less memory than " + inBytes.people(want) + ", which the shape needs for all its cores",
				change: "ask for a shape with less memory for each core",
			})
		}
		if s.Kernel() {
			b.add(check{
				reason: ReasonShapeKernel,
				pass:   func(m *muster.Machine) bool { return providers.For(m.Provider, spec.VM).OwnKernel },
				text:   "run on the kernel of their host, whose command line is not theirs",
				change: "leave out shape.kernel_args and shape.numa, or ask for machines with kernels of their own",
			})
		}
	}
	if spec.LinkRate > 0 {
		b.add(check{
			reason: ReasonLinkRate, head: true,
			pass:   func(m *muster.Machine) bool { return providers.For(m.Provider, spec.VM).LinkRates },
			text:   "have links whose rate cannot be bounded",
			change: "leave out link_rate, or ask for machines of another provider",
		})
	}
}

// HasCores reports whether a machine has the cores of a shape in its sockets.
func HasCores(f *muster.Facts, s *muster.Shape) bool {
	sockets := max(1, f.Sockets)
	if s.Sockets == 0 {
		return f.Cores >= s.Cores
	}
	return sockets >= s.Sockets && f.Cores/sockets >= s.Cores/s.Sockets
}
