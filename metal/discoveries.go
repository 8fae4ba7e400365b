package metal

import (
	"context"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal/bootapi"
	"github.com/muster-hpc/muster/metal/netboot"
	"github.com/muster-hpc/muster/metal/netboot/dhcp"
	"github.com/muster-hpc/muster/metal/netboot/httpboot"
	"github.com/muster-hpc/muster/wire"
)

// Discovered machines are machines that the site does not know. They are remembered in memory, so
// many at most, for so long.
const (
	maxDiscoveries = 4096
	discoveryLife  = 15 * time.Minute // of the number of a boot
	// discoveryRest is how long a discovered machine that told what it is is not booted again, so that
	// one that boots from the network first does not do that for ever.
	discoveryRest = time.Hour
	// discoveryPause is the same for one that failed.
	discoveryPause = 10 * time.Minute
)

// discovered is a machine that the site does not know, and its one boot: a discovery. It is
// given nothing else, whatever happens, because there is nowhere to keep another order.
type discovered struct {
	mac      string
	number   string
	made     time.Time
	rest     time.Time // until then it is not booted
	heard    bool
	at, port string // as a trusted relay says
}

// discoveries are those of a site; b.mu guards them.
type discoveries struct {
	macs    map[string]*discovered
	numbers map[string]*discovered
}

// invite is the number of the boot that a machine may have which the site does not
// know; "" where it may have none, and why. b.mu is held.
func (b *Boots) invite(r *netboot.Request) (number, why string) {
	now, mac := b.c.Clock.Now(), r.MAC.String()
	if _, err := muster.ParseMAC(mac); err != nil {
		return "", "its address is that of no machine"
	}
	g := b.discoveries.macs[mac]
	if g == nil {
		if !b.discoveries.room(now) {
			return "", "too many unknown machines come at once"
		}
		g = &discovered{mac: mac}
		b.discoveries.macs[mac] = g
	}
	if now.Before(g.rest) {
		return "", "it was looked at lately"
	}
	if g.number == "" || now.Sub(g.made) >= discoveryLife {
		delete(b.discoveries.numbers, g.number)
		g.number, g.made, g.heard = muster.RandomID(20), now, false
		b.discoveries.numbers[g.number] = g
	}
	g.at, g.port = "", ""
	if r.Evidence.Trusted && len(r.Evidence.Circuit) > 0 && len(r.Evidence.Remote) > 0 {
		g.at, g.port = string(r.Evidence.Remote), string(r.Evidence.Circuit)
	}
	return g.number, ""
}

// room forgets discovered machines that are gone. Where too many are left, the one goes that came
// first and never spoke: whoever makes up addresses does not speak.
func (l *discoveries) room(now time.Time) bool {
	if len(l.macs) < maxDiscoveries {
		return true
	}
	var silent *discovered
	for _, g := range l.macs {
		switch over := now.Sub(g.made) >= discoveryLife && !now.Before(g.rest); {
		case over:
			l.forget(g)
		case !g.heard && !now.Before(g.rest) && (silent == nil || g.made.Before(silent.made)):
			silent = g
		}
	}
	if len(l.macs) >= maxDiscoveries && silent != nil {
		l.forget(silent)
	}
	return len(l.macs) < maxDiscoveries
}

func (l *discoveries) forget(g *discovered) {
	delete(l.macs, g.mac)
	delete(l.numbers, g.number)
}

// newDiscovered is the one whose boot has a number, unless that is over or an administrator
// forbade the machine meanwhile; b.mu is held.
func (b *Boots) newDiscovered(number string) *discovered {
	g := b.discoveries.numbers[number]
	if g == nil {
		return nil
	}
	now := b.c.Clock.Now()
	m := b.machines[b.macs[g.mac]]
	if now.Sub(g.made) >= discoveryLife || m != nil && m.reg.State == muster.RegistrationBlocked {
		return nil
	}
	return g
}

// discoveredBoot is what the boot server is told of the boot of a discovered machine.
func (b *Boots) discoveredBoot(number string) (out bootapi.Boot, mac string, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	g := b.newDiscovered(number)
	if g == nil {
		return out, "", false
	}
	return bootapi.Boot{Number: number, Kind: wire.BootDiscover, MACs: []string{g.mac}, Expires: g.made.Add(discoveryLife)}, g.mac, true
}

// discoveredFiles is what a discovered machine loads.
func (b *Boots) discoveredFiles(number string) (netboot.Boot, bool) {
	_, mac, ok := b.discoveredBoot(number)
	if !ok {
		return netboot.Boot{}, false
	}
	a, err := dhcp.ParseMAC(mac)
	if err != nil {
		return netboot.Boot{}, false
	}
	f, err := b.c.Files("", wire.BootDiscover)
	if err != nil {
		b.c.Log.Error("discovery boot failed", "mac", mac, "error", err)
		return netboot.Boot{}, false
	}
	return netboot.Boot{MACs: []netboot.MAC{a}, Boot: httpboot.Boot{
		Number: number, Kernel: f.Kernel, Initramfs: f.Initramfs, Server: f.Server, CA: f.CA, Args: f.Args,
	}}, true
}

// discoveryGiveUp is how long a discovered machine tries what fails.
const discoveryGiveUp = muster.Duration(5 * time.Minute)

// discoveryOrder is all that a discovered machine is ever told. There is nothing secret in it, so it need
// not be bound to one program.
func discoveryOrder() *wire.BootTask {
	return &wire.BootTask{Kind: wire.BootDiscover, GiveUp: discoveryGiveUp}
}

// discoveredHeard passes on what a discovered machine says of itself.
func (b *Boots) discoveredHeard(ctx context.Context, number string, h *wire.BootCheckIn) error {
	b.mu.Lock()
	g := b.newDiscovered(number)
	if g == nil {
		b.mu.Unlock()
		return muster.Errorf(muster.ENotFound, "no boot has this number").Because(muster.ReasonNoSuchBoot)
	}
	g.heard = true
	found := muster.DiscoveredMachine{MAC: g.mac, MACs: h.MACs, Serial: h.Serial, UUID: h.UUID, Facts: h.Facts, Address: h.Address, Switch: g.at, Port: g.port}
	found.Whole = h.Done != nil && h.Done.Kind == wire.BootDiscover
	b.mu.Unlock()
	if h.TPM != nil {
		found.Endorsement = h.TPM.Endorsement
	}
	if h.Facts != nil {
		switch err := b.c.OnDiscovered(ctx, found); {
		case muster.CodeOf(err) == muster.EInvalid:
			b.c.Log.Warn("discovery report rejected", "mac", found.MAC, "error", err)
		case err != nil:
			return err
		}
	}
	now := b.c.Clock.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case h.Done != nil && h.Done.Kind == wire.BootDiscover:
		g.rest = now.Add(discoveryRest)
	case h.Failure != nil && h.Failure.Final:
		g.rest = now.Add(discoveryPause)
	}
	return nil
}
