package dhcp

import (
	"net/netip"
	"slices"
	"sync"
	"time"
)

// state is how an address is used.
type state int

const (
	offered state = iota // to a machine that has not answered
	bound                // a machine has it
	taken                // something answers there that was not given it
)

// entry is an address that is not free.
type entry struct {
	address netip.Addr
	mac     MAC // for taken ones: who answered, if that is known
	state   state
	until   time.Time
}

// place is a machine in a network: it has at most one address in each.
type place struct {
	mac MAC
	net int
}

// Table is who has which address. For several goroutines.
type Table struct {
	mu      sync.Mutex
	pools   []*pool
	entries map[netip.Addr]*entry
	places  map[place]*entry
	holds   func(MAC) bool
	dirty   []Lease // bound or given back, and not yet kept
}

// Times that no site has had a reason to change.
const (
	offerHold = time.Minute      // an offer is good for so long
	takenHold = 10 * time.Minute // an address that somebody else uses is left alone for so long
)

func newTable(networks []Network, self netip.Addr, holds func(MAC) bool) *Table {
	t := &Table{entries: map[netip.Addr]*entry{}, places: map[place]*entry{}, holds: holds}
	for _, n := range networks {
		t.pools = append(t.pools, newPool(n, self))
	}
	return t
}

// load takes over leases of before. Those that fit no network any more are
// forgotten.
func (t *Table) load(leases []Lease) (forgotten int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range leases {
		n := t.network(l.Address)
		if n < 0 {
			forgotten++
			continue
		}
		if old := t.places[place{l.MAC, n}]; old != nil {
			if old.until.After(l.Until) {
				continue
			}
			delete(t.entries, old.address)
		}
		t.set(n, &entry{l.Address, l.MAC, bound, l.Until})
	}
	return forgotten
}

// network is the index of the network that an address is in, -1 without.
func (t *Table) network(a netip.Addr) int {
	for i, p := range t.pools {
		if p.Prefix.Contains(a) {
			return i
		}
	}
	return -1
}

func (t *Table) set(n int, e *entry) {
	t.entries[e.address] = e
	if e.state != taken {
		t.places[place{e.mac, n}] = e
	}
}

// remove frees an address, which becomes the last to be given out again.
func (t *Table) remove(n int, e *entry) {
	delete(t.entries, e.address)
	if t.places[place{e.mac, n}] == e {
		delete(t.places, place{e.mac, n})
	}
	t.pools[n].put(e.address)
}

// usable says whether a machine may have an address: nobody else has it, or the
// one who had it is not held and their time is over.
func (t *Table) usable(a netip.Addr, m MAC, now time.Time) bool {
	e := t.entries[a]
	return e == nil || e.mac == m || t.over(e, now)
}

func (t *Table) over(e *entry, now time.Time) bool {
	return !now.Before(e.until) && (e.state != bound || !t.holds(e.mac))
}

// give makes an entry for a machine, in the place of what it had and of what was
// there.
func (t *Table) give(n int, a netip.Addr, m MAC, s state, until time.Time) *entry {
	if old := t.places[place{m, n}]; old != nil && old.address != a {
		if old.state == bound {
			t.dirty = append(t.dirty, Lease{MAC: m, Address: old.address})
		}
		t.remove(n, old)
	}
	if e := t.entries[a]; e != nil {
		if e.mac == m && e.state == bound && s == offered {
			return e // an offer does not take away what it has
		}
		if t.places[place{e.mac, n}] == e {
			delete(t.places, place{e.mac, n})
		}
	}
	e := &entry{a, m, s, until}
	t.set(n, e)
	return e
}

// refusal is why a machine gets no address, for the operator. Empty: it does.
type refusal string

// offer finds an address for a machine in network n and keeps it for a minute.
func (t *Table) offer(n int, r *Request, v Verdict, now time.Time) (netip.Addr, refusal) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a, why := t.choose(n, r, v, now)
	if why == "" {
		t.give(n, a, r.MAC, offered, now.Add(offerHold))
	}
	return a, why
}

func (t *Table) choose(n int, r *Request, v Verdict, now time.Time) (netip.Addr, refusal) {
	p := t.pools[n]
	had := t.places[place{r.MAC, n}]
	if v.Address.IsValid() {
		if had != nil && had.state == bound && had.address != v.Address && t.holds(r.MAC) {
			return had.address, "" // its node is up: nothing moves under it
		}
		switch {
		case !p.Prefix.Contains(v.Address):
			return netip.Addr{}, refusal("its address " + v.Address.String() + " is not of the network " + p.Prefix.String() + " that it asks from")
		case !t.usable(v.Address, r.MAC, now):
			e := t.entries[v.Address]
			if e.state == taken {
				return netip.Addr{}, refusal("its address " + v.Address.String() + " is used by something else, " + e.mac.String())
			}
			return netip.Addr{}, refusal("its address " + v.Address.String() + " is lent to " + e.mac.String())
		}
		return v.Address, ""
	}
	if had != nil && (p.has(had.address, v.Standing) || t.holds(r.MAC)) {
		return had.address, ""
	}
	if p.has(r.wanted, v.Standing) && t.usable(r.wanted, r.MAC, now) {
		return r.wanted, ""
	}
	if a, ok := t.free(p, v.Standing); ok {
		return a, ""
	}
	t.reclaim(n, now)
	if a, ok := t.free(p, v.Standing); ok {
		return a, ""
	}
	return netip.Addr{}, refusal("no free address in " + p.Prefix.String())
}

func (t *Table) free(p *pool, s Standing) (netip.Addr, bool) {
	return p.take(s, func(a netip.Addr) bool { return t.entries[a] == nil })
}

// reclaim frees what is over in network n, the longest unused first. It looks at
// every address, so not more often than twice a second.
func (t *Table) reclaim(n int, now time.Time) {
	p := t.pools[n]
	if now.Sub(p.reclaimed) < time.Second/2 && !now.Before(p.reclaimed) {
		return
	}
	p.reclaimed = now
	var over []*entry
	for a, e := range t.entries {
		if p.Prefix.Contains(a) && t.over(e, now) {
			over = append(over, e)
		}
	}
	slices.SortFunc(over, func(a, b *entry) int {
		if c := a.until.Compare(b.until); c != 0 {
			return c
		}
		return a.address.Compare(b.address)
	})
	for _, e := range over {
		if e.state == bound {
			t.dirty = append(t.dirty, Lease{MAC: e.mac, Address: e.address})
		}
		t.remove(n, e)
	}
}

// Owner is the machine that has an address: its lease has not run out, or is held.
func (t *Table) Owner(a netip.Addr, now time.Time) (MAC, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.entries[a]
	if e == nil || e.state != bound || t.over(e, now) {
		return MAC{}, false
	}
	return e.mac, true
}

// AddressOf is the address that a machine has now, in the first network that gave it one.
func (t *Table) AddressOf(m MAC, now time.Time) (netip.Addr, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for n := range t.pools {
		if e := t.places[place{m, n}]; e != nil && e.state == bound && !t.over(e, now) {
			return e.address, true
		}
	}
	return netip.Addr{}, false
}

// Leases are the addresses that machines have, in order.
func (t *Table) Leases() []Lease {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []Lease
	for _, e := range t.entries {
		if e.state == bound {
			out = append(out, Lease{e.mac, e.address, e.until})
		}
	}
	slices.SortFunc(out, func(a, b Lease) int { return a.Address.Compare(b.Address) })
	return out
}

// unkept returns what is to be put into Leases, and forgets it once kept is called.
func (t *Table) unkept() (leases []Lease, kept func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(t.dirty)
	return slices.Clone(t.dirty), func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.dirty = append(t.dirty[:0], t.dirty[n:]...)
	}
}

// next are addresses of network n that will be given out next.
func (t *Table) next(n, max int) []netip.Addr {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.pools[n].next(max)
}
