package nfs

import (
	"net/netip"
	"slices"
)

// Use is that machines mount a directory: those of one cluster, or its head alone.
type Use struct {
	Name     string // of the export
	Path     string
	ReadOnly bool
	Machines []netip.Addr // addresses from which they ask
}

// Of are the exports for all that is used. A volume that several clusters mount is one
// export; a machine that may write by one of them may write.
func Of(uses []Use) []Export {
	at := map[string]int{}
	var out []Export
	for _, u := range uses {
		i, ok := at[u.Name]
		if !ok {
			i = len(out)
			at[u.Name] = i
			out = append(out, Export{Name: u.Name, Path: u.Path})
		}
		e := &out[i]
		for _, a := range u.Machines {
			n := slices.IndexFunc(e.Clients, func(c Client) bool { return c.Address == a })
			if n < 0 {
				e.Clients = append(e.Clients, Client{Address: a, ReadOnly: u.ReadOnly})
				continue
			}
			e.Clients[n].ReadOnly = e.Clients[n].ReadOnly && u.ReadOnly
		}
	}
	return sorted(out)
}
