package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// bareFields are what is special about a bare machine: how it is registered and
// believed, and who made it.
func bareFields(m wire.Machine, now time.Time) []string {
	var pairs []string
	if m.Registration != nil {
		pairs = registrationFields(*m.Registration, now)
	}
	return append(pairs,
		"made by", strings.TrimSpace(m.Facts.Vendor+" "+m.Facts.Product),
		"serial", m.Facts.Serial,
		"firmware", m.Facts.Firmware,
	)
}

// writeBare writes what should be looked at of a bare machine, its parts, and what it
// boots for.
func writeBare(w io.Writer, m wire.Machine, now time.Time) {
	if r := m.Registration; r != nil {
		for _, c := range r.Changed {
			fmt.Fprintf(w, "changed: %s\n", clean(c))
		}
		for _, d := range r.Warnings() {
			fmt.Fprintf(w, "look at: %s\n", clean(d))
		}
	}
	writeHardware(w, m.Facts)
	if m.Boot != nil {
		writeBoot(w, *m.Boot, now)
	}
}

func registrationFields(r muster.Registration, now time.Time) []string {
	var cards []string
	for _, n := range r.NICs {
		card := n.Use + " " + n.MAC
		if n.Switch != "" {
			card += " at " + n.Switch + " port " + n.Port
		}
		cards = append(cards, card)
	}
	booted := "never"
	if !r.Seen.IsZero() {
		booted = since(r.Seen, now) + " ago"
		if r.Trust != "" {
			booted += ", trusted as " + string(r.Trust)
		}
	}
	if r.Asked.After(r.Seen) {
		booted += "; asked " + since(r.Asked, now) + " ago to tell what it is made of"
	}
	place := r.Position
	if r.Chassis != "" {
		place = strings.TrimPrefix(place+", chassis "+r.Chassis, ", ")
	}
	return []string{
		"registered", string(r.State) + by(r),
		"remark", r.Remark,
		"boots from", strings.Join(cards, ", "),
		"power", powerText(r.Power),
		"position", place,
		"booted", booted,
		"TPM", tpmText(r),
		"least trust", string(r.RequiredTrust("")),
	}
}

func by(r muster.Registration) string {
	if r.By == "" {
		return ", came by itself"
	}
	return ", by " + r.By
}

// powerText says how a machine is switched. There is no password in it.
func powerText(p muster.PowerAddress) string {
	parts := []string{p.String()}
	add := func(say bool, format string, args ...any) {
		if say {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(p.Quirk != "", "quirk %s", p.Quirk)
	add(p.BootMode != "", "boot mode %s", p.BootMode)
	add(p.Boot != "", "boots by %s", p.Boot)
	add(p.CertificateSHA256 != "", "certificate sha256:%s", p.CertificateSHA256)
	add(p.Authority != "", "certificate of authority %s", p.AuthorityName())
	add(p.Interface != "", "packets out of %s", p.Interface)
	add(p.Proves, "its off is proof")
	return strings.Join(parts, ", ")
}

// tpmText reports which TPM vouches for a machine.
func tpmText(r muster.Registration) string {
	switch {
	case len(r.EndorsementKey) > 0:
		return fingerprint(r.EndorsementKey) + ", enrolled"
	case len(r.ObservedEK) > 0:
		return fingerprint(r.ObservedEK) + ", shown and not enrolled: muster machine approve " + string(r.ID)
	}
	return ""
}

// fingerprint distinguishes keys, as the server does in its texts.
func fingerprint(key []byte) string {
	sum := sha256.Sum256(key)
	return hex.EncodeToString(sum[:8])
}

// writeHardware writes the parts of a machine that is a whole computer.
func writeHardware(w io.Writer, f muster.Facts) {
	if len(f.DIMMs) > 0 {
		t := newTable("SLOT", "DIMM", "KIND", "MT/S", "MAKER", "PART", "SERIAL")
		for _, d := range f.DIMMs {
			speed := ""
			if d.Speed > 0 {
				speed = fmt.Sprint(d.Speed)
			}
			t.row(d.Slot, size(d.Size), d.Kind, speed, d.Vendor, d.Part, d.Serial)
		}
		t.write(w)
	}
	if len(f.Disks) > 0 {
		t := newTable("DISK", "SIZE", "KIND", "MODEL", "SERIAL")
		for _, d := range f.Disks {
			t.row(d.Name, size(d.Size), d.Kind, d.Model, d.Serial)
		}
		t.write(w)
	}
	if !wired(f) {
		return
	}
	t := newTable("CARD", "MAC", "SPEED", "LINK", "DRIVER", "PLACE", "SWITCH", "PORT")
	for _, n := range f.NICs {
		speed, at, port := "", "", ""
		if n.Speed > 0 {
			speed = bits(n.Speed)
		}
		if b := n.Neighbour; b != nil {
			if at = b.System; at == "" {
				at = b.Chassis
			}
			port = b.Port
		}
		t.row(n.Name, n.MAC, speed, n.Link, n.Driver, n.PCIAddress, at, port)
	}
	t.write(w)
}

// wired reports whether more is known of network cards than of those of a slice.
func wired(f muster.Facts) bool {
	return slices.ContainsFunc(f.NICs, func(n muster.NIC) bool { return n.Driver != "" || n.Neighbour != nil })
}

// writeBoot writes how far a machine is with a boot.
func writeBoot(w io.Writer, b wire.MachineBoot, now time.Time) {
	fmt.Fprintf(w, "boot: %s\n", clean(bootText(b, now)))
	if b.Address != "" {
		fmt.Fprintf(w, "  address %s\n", clean(b.Address))
	}
	last := muster.Duration(0)
	for _, s := range b.Stages {
		fmt.Fprintf(w, "  %8.1fs  %-16s +%.1fs\n", s.After.Seconds(), clean(s.Name), (s.After - last).Seconds())
		last = s.After
	}
	if b.Doing != "" && !b.Over() {
		fmt.Fprintf(w, "            %s ...\n", clean(b.Doing))
	}
	if f := b.Failure; f != nil {
		fmt.Fprintf(w, "  failed in %s (%s): %s\n", clean(f.Stage), clean(f.Code), clean(f.Text))
		if f.Hint != "" {
			fmt.Fprintf(w, "    %s\n", clean(f.Hint))
		}
	}
}

// bootText is a boot in a line.
func bootText(b wire.MachineBoot, now time.Time) string {
	text := fmt.Sprintf("%s, %s for %s", bootWhat(b.Kind), b.Step, since(b.Since, now))
	if q := b.Queue; q != nil {
		text = bootWhat(b.Kind) + ", " + queueText(*q, b.Rack, now)
	}
	if b.Trust != "" {
		text += ", trusted as " + string(b.Trust)
	}
	return text
}

// bootWhat says what a machine boots for.
func bootWhat(k wire.BootKind) string {
	switch k {
	case wire.BootImage:
		return "to become a node"
	case wire.BootDiscover:
		return "to tell what it is made of"
	case wire.BootTest:
		return "to be tested"
	case wire.BootClean:
		return "to be cleaned"
	}
	return string(k)
}

func queueText(q wire.BootPlace, rack string, now time.Time) string {
	text := fmt.Sprintf("queued, place %d", q.Place)
	if rack != "" {
		text += " in rack " + rack
	}
	return text + etaOf(q.ETA, now)
}

// etaOf says when a machine is likely to be switched on.
func etaOf(eta, now time.Time) string {
	switch {
	case eta.IsZero():
		return ""
	case !eta.After(now):
		return ", any moment"
	}
	return ", in about " + age(eta.Sub(now))
}
