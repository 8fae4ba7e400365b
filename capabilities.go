package muster

import "slices"

// Capabilities are what all machines of one provider have in common, as far as
// anything outside the provider depends on it. Code asks for these and never for a
// provider's name. They do not change while a provider is open.
type Capabilities struct {
	// OwnKernel: a machine runs a kernel of its own, and mounts its volumes over the
	// network. Otherwise the server's host mounts them for it.
	OwnKernel bool
	// RootInMemory: a machine keeps the image's root file system in its memory, which
	// must be large enough for it.
	RootInMemory bool
	// SharesHost: the machines are parts of the server's own host.
	SharesHost bool
	// OffWhenFree: a machine that nobody uses is switched off, and its silence means
	// nothing.
	OffWhenFree bool
	// Simulated: the machines compute nothing, and nobody can log in to them.
	Simulated bool
	// Ephemeral: a machine is made for its cluster and ends with it.
	Ephemeral bool
	// Freezes: a machine can stand still and go on with all that it has in memory.
	Freezes bool
	// Saves: a machine can be saved with all that it has in memory, be given back, and go on
	// from that on another of its kind.
	Saves bool
	// Hibernates: the site lets a machine write its memory to a disk of its own, go off, and go on
	// from there.
	Hibernates bool
	// Fabric names the message network that the machines can join. One cluster has
	// machines of one fabric.
	Fabric string
	// Volumes are the drivers whose volumes the machines can mount. Nil: all.
	Volumes []VolumeDriver
	// Egress are the ways out that the machines can have. Nil: all.
	Egress []Egress
	// LinkRates: the links of the machines can be held to a rate.
	LinkRates bool
	// LargestUID is the highest user ID that exists on the machines. 0: every one does.
	LargestUID int
	// Trust is how far a machine is believed that nothing more is known of.
	Trust Trust
	// BootsAtOnce limits how many machines may be booting at once. 0: the provider
	// limits that itself.
	BootsAtOnce int
	// VM is what its machines can do when they are booted as virtual machines. Nil: they cannot
	// be.
	VM *Capabilities
}

// CanMount reports whether the machines can mount volumes of a driver.
func (c Capabilities) CanMount(d VolumeDriver) bool {
	return c.Volumes == nil || slices.Contains(c.Volumes, d)
}

// CanUse reports whether the machines can have a way out.
func (c Capabilities) CanUse(e Egress) bool {
	return c.Egress == nil || slices.Contains(c.Egress, e)
}

// HasUID reports whether a user ID exists on the machines.
func (c Capabilities) HasUID(uid int) bool { return c.LargestUID == 0 || uid <= c.LargestUID }

// Providers are the capabilities of a site's providers, by name.
type Providers map[string]Capabilities

// Of returns the capabilities of a provider. Of one that the server was started
// without nothing good is assumed: its machines are records only, until it is back.
func (p Providers) Of(name string) Capabilities {
	c, ok := p[name]
	if !ok {
		c = Capabilities{RootInMemory: true, Trust: TrustNetwork}
	}
	if c.Fabric == "" {
		c.Fabric = name
	}
	return c
}

// For returns what the machines of a provider can do for a request: vm is what that says of
// virtual machines; nil: it asks for none. Machines that cannot be booted so can do next to nothing.
func (p Providers) For(name string, vm *VMOptions) Capabilities {
	c := p.Of(name)
	if vm == nil {
		return c
	}
	if c.VM == nil {
		return Capabilities{RootInMemory: true, Trust: TrustNetwork, Fabric: c.Fabric}
	}
	v := *c.VM
	v.Fabric, v.Simulated = c.Fabric, c.Simulated
	return v
}

// Fabric names the message network that a machine can join.
func (p Providers) Fabric(m *Machine) string { return p.Of(m.Provider).Fabric }
