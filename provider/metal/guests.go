package metal

import (
	"context"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/bootdesk"
	"github.com/muster-hpc/muster/netboot"
	"github.com/muster-hpc/muster/netboot/dhcp"
	"github.com/muster-hpc/muster/netboot/web"
	"github.com/muster-hpc/muster/wire"
)

// Guests are machines that the site does not know. They are remembered in memory, so
// many at most, for so long.
const (
	mostGuests = 4096
	guestLife  = 15 * time.Minute // of the number of a boot
	// guestRest is how long a guest that told what it is is not booted again, so that
	// one that boots from the network first does not do that for ever.
	guestRest = time.Hour
	// guestPause is the same for one that failed.
	guestPause = 10 * time.Minute
)

// guest is a machine that the site does not know, and its one boot: a discovery. It is
// given nothing else, whatever happens, because there is nowhere to keep another order.
type guest struct {
	mac      string
	number   string
	made     time.Time
	rest     time.Time // until then it is not booted
	heard    bool
	at, port string // as a trusted relay says
}

// guests are those of a site; b.mu guards them.
type guests struct {
	macs    map[string]*guest
	numbers map[string]*guest
}

// invite is the number of the boot that a machine may have which the site does not
// know; "" where it may have none, and why. b.mu is held.
func (b *Boots) invite(r *netboot.Request) (number, why string) {
	now, mac := b.c.Clock.Now(), r.MAC.String()
	if _, err := muster.ParseMAC(mac); err != nil {
		return "", "its address is that of no machine"
	}
	g := b.guests.macs[mac]
	if g == nil {
		if !b.guests.room(now) {
			return "", "too many unknown machines come at once"
		}
		g = &guest{mac: mac}
		b.guests.macs[mac] = g
	}
	if now.Before(g.rest) {
		return "", "it was looked at lately"
	}
	if g.number == "" || now.Sub(g.made) >= guestLife {
		delete(b.guests.numbers, g.number)
		g.number, g.made, g.heard = muster.RandomID(20), now, false
		b.guests.numbers[g.number] = g
	}
	g.at, g.port = "", ""
	if r.Evidence.Trusted && len(r.Evidence.Circuit) > 0 && len(r.Evidence.Remote) > 0 {
		g.at, g.port = string(r.Evidence.Remote), string(r.Evidence.Circuit)
	}
	return g.number, ""
}

// room forgets guests that are gone. Where too many are left, the one goes that came
// first and never spoke: whoever makes up addresses does not speak.
func (l *guests) room(now time.Time) bool {
	if len(l.macs) < mostGuests {
		return true
	}
	var silent *guest
	for _, g := range l.macs {
		switch over := now.Sub(g.made) >= guestLife && !now.Before(g.rest); {
		case over:
			l.forget(g)
		case !g.heard && !now.Before(g.rest) && (silent == nil || g.made.Before(silent.made)):
			silent = g
		}
	}
	if len(l.macs) >= mostGuests && silent != nil {
		l.forget(silent)
	}
	return len(l.macs) < mostGuests
}

func (l *guests) forget(g *guest) {
	delete(l.macs, g.mac)
	delete(l.numbers, g.number)
}

// guest is the one whose boot has a number, unless that is over or an administrator
// forbade the machine meanwhile; b.mu is held.
func (b *Boots) guest(number string) *guest {
	g := b.guests.numbers[number]
	if g == nil {
		return nil
	}
	now := b.c.Clock.Now()
	m := b.machines[b.macs[g.mac]]
	if now.Sub(g.made) >= guestLife || m != nil && m.reg.State == muster.RegistrationForbidden {
		return nil
	}
	return g
}

// guestBoot is what the desk is told of the boot of a guest.
func (b *Boots) guestBoot(number string) (out bootdesk.Boot, mac string, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	g := b.guest(number)
	if g == nil {
		return out, "", false
	}
	return bootdesk.Boot{Number: number, Kind: wire.BootDiscover, MACs: []string{g.mac}, Expires: g.made.Add(guestLife)}, g.mac, true
}

// guestFiles is what a guest loads.
func (b *Boots) guestFiles(number string) (netboot.Boot, bool) {
	_, mac, ok := b.guestBoot(number)
	if !ok {
		return netboot.Boot{}, false
	}
	a, err := dhcp.ParseMAC(mac)
	if err != nil {
		return netboot.Boot{}, false
	}
	f, err := b.c.Files("", wire.BootDiscover)
	if err != nil {
		b.c.Log.Error("an unknown machine cannot boot", "mac", mac, "error", err)
		return netboot.Boot{}, false
	}
	return netboot.Boot{MACs: []netboot.MAC{a}, Boot: web.Boot{
		Number: number, Kernel: f.Kernel, Initramfs: f.Initramfs, Server: f.Server, CA: f.CA, Args: f.Args,
	}}, true
}

// guestGiveUp is how long a guest tries what fails, in milliseconds.
const guestGiveUp = 5 * 60 * 1000

// guestOrder is all that a guest is ever told. There is nothing secret in it, so it need
// not be bound to one program.
func guestOrder() *wire.BootOrder {
	return &wire.BootOrder{Kind: wire.BootDiscover, GiveUpMS: guestGiveUp}
}

// guestHeard passes on what a guest says of itself.
func (b *Boots) guestHeard(ctx context.Context, number string, h *wire.BootHello) error {
	b.mu.Lock()
	g := b.guest(number)
	if g == nil {
		b.mu.Unlock()
		return muster.Errorf(muster.ENotFound, "no boot has this number").Because(muster.ReasonNoSuchBoot)
	}
	g.heard = true
	found := muster.Guest{MAC: g.mac, MACs: h.MACs, Serial: h.Serial, UUID: h.UUID, Facts: h.Facts, Address: h.Address, Switch: g.at, Port: g.port}
	found.Whole = h.Done != nil && h.Done.Kind == wire.BootDiscover
	b.mu.Unlock()
	if h.TPM != nil {
		found.Endorsement = h.TPM.Endorsement
	}
	if h.Facts != nil {
		switch err := b.c.Found(ctx, found); {
		case muster.CodeOf(err) == muster.EInvalid:
			b.c.Log.Warn("an unknown machine makes no sense", "mac", found.MAC, "error", err)
		case err != nil:
			return err
		}
	}
	now := b.c.Clock.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case h.Done != nil && h.Done.Kind == wire.BootDiscover:
		g.rest = now.Add(guestRest)
	case h.Failure != nil && h.Failure.Final:
		g.rest = now.Add(guestPause)
	}
	return nil
}
