package control

import (
	"cmp"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal/factsdiff"
	"github.com/muster-hpc/muster/pki/attest"
	"github.com/muster-hpc/muster/store"
)

// boundedDiscovered is what a stranger says as far as it is kept.
func boundedDiscovered(g muster.DiscoveredMachine) (muster.DiscoveredMachine, error) {
	mac, err := muster.ParseMAC(g.MAC)
	if err != nil {
		return g, err
	}
	g.MAC = mac
	var f muster.Facts
	if g.Facts != nil {
		f = factsdiff.Bounded(*g.Facts)
	}
	g.Facts = &f
	// What cannot be a serial number or a UUID is none: it would forbid the approval.
	r := muster.Registration{ID: "m", Serial: g.Serial, UUID: strings.ToLower(g.UUID), NICs: []muster.RegisteredNIC{{MAC: mac, Use: muster.UseManagement}}, Power: muster.PowerAddress{Kind: muster.PowerWOL}}
	g.UUID = r.UUID
	for _, p := range r.Check() {
		switch p.Field {
		case "serial":
			g.Serial = ""
		case "uuid":
			g.UUID = ""
		}
	}
	if g.Endorsement != nil {
		if g.Endorsement, err = attest.Enrol(g.Endorsement); err != nil {
			g.Endorsement = nil
		}
	}
	return g, nil
}

// discoveredOwner is the registration that has the interface of a discovered machine, or another of those
// that it says it has; an empty one where there is none.
func discoveredOwner(tx *store.Tx, g muster.DiscoveredMachine) (muster.Registration, error) {
	macs := append([]string{g.MAC}, g.MACs[:min(len(g.MACs), maxDiscoveredNICs)]...)
	for _, mac := range macs {
		mac, err := muster.ParseMAC(mac)
		if err != nil {
			continue
		}
		r, err := tx.RegistrationOf(mac)
		if err == nil && (mac == g.MAC || r.State == muster.RegistrationApproved) {
			return r, nil
		}
		if err != nil && muster.CodeOf(err) != muster.ENotFound {
			return r, err
		}
	}
	return muster.Registration{}, nil
}

// maxDiscoveredNICs bounds the interfaces of a stranger that are looked at.
const maxDiscoveredNICs = 32

// guessed are the interfaces of a discovered machine: it is managed by the one that it booted from,
// and of the others the fastest that has a link is for messages.
func guessed(tx *store.Tx, id muster.MachineID, g muster.DiscoveredMachine) ([]muster.RegisteredNIC, error) {
	out := []muster.RegisteredNIC{{MAC: g.MAC, Use: muster.UseManagement}}
	// A name that came over the network never makes this server run a program.
	if g.Switch != "" && g.Port != "" && !strings.HasPrefix(g.Switch, "script:") {
		out[0].Switch, out[0].Port = g.Switch, g.Port
	}
	list := slices.DeleteFunc(slices.Clone(g.Facts.NICs), func(n muster.NIC) bool {
		mac, err := muster.ParseMAC(n.MAC)
		return err != nil || mac != n.MAC || mac == g.MAC || n.Link == "down"
	})
	slices.SortStableFunc(list, func(a, b muster.NIC) int {
		up := func(n muster.NIC) int {
			if n.Link == "up" {
				return 0
			}
			return 1
		}
		return cmp.Or(cmp.Compare(up(a), up(b)), cmp.Compare(b.Speed, a.Speed))
	})
	for _, n := range list[:min(len(list), maxDiscoveredNICs)] {
		switch owner, err := tx.RegistrationOf(n.MAC); {
		case muster.CodeOf(err) == muster.ENotFound || err == nil && owner.ID == id:
			return append(out, muster.RegisteredNIC{MAC: n.MAC, Use: muster.UseMessage}), nil
		case err != nil:
			return nil, err
		}
	}
	return out, nil
}
