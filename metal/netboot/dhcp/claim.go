package dhcp

import (
	"net/netip"
	"time"
)

// claim is what a machine may do with the address that it names.
type claim int

const (
	granted claim = iota
	denied        // it must not use the address, and is told so
)

// claim binds the address that a machine asks to use, for d from now.
func (t *Table) claim(n int, a netip.Addr, m MAC, v Verdict, now time.Time, d time.Duration) (claim, refusal) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.pools[n]
	had := t.places[place{m, n}]
	e := t.entries[a]
	switch {
	case !p.Prefix.Contains(a):
		return denied, refusal(a.String() + " is not of the network " + p.Prefix.String())
	case had != nil && had.address == a && had.state == bound && t.holds(m):
		// Its node is up: it keeps what it has, whatever was written since.
	case v.Address.IsValid() && v.Address != a:
		return denied, refusal(a.String() + " is not its address, " + v.Address.String() + " is")
	case e != nil && e.state == taken && e.mac != m && now.Before(e.until):
		return denied, refusal(a.String() + " is used by something else, " + e.mac.String())
	case !t.usable(a, m, now):
		return denied, refusal(a.String() + " is lent to " + e.mac.String())
	case !v.Address.IsValid() && !p.has(a, v.Standing):
		return denied, refusal(a.String() + " is in no range for it")
	}
	// A lease that has most of its time before it is not written down again: a
	// machine asks three times in one boot, and a disk is slower than a network.
	until := now.Add(d)
	if had != nil && had.address == a && had.state == bound && had.until.Sub(now) > d*9/10 {
		return granted, ""
	}
	t.give(n, a, m, bound, until)
	t.dirty = append(t.dirty, Lease{m, a, until})
	return granted, ""
}

// release frees an address that a machine gives back. A held one stays.
func (t *Table) release(n int, a netip.Addr, m MAC) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.places[place{m, n}]
	if e == nil || e.address != a || t.holds(m) {
		return false
	}
	if e.state == bound {
		t.dirty = append(t.dirty, Lease{MAC: m, Address: a})
	}
	t.remove(n, e)
	return true
}

// withdraw forgets an offer that the machine did not take.
func (t *Table) withdraw(n int, m MAC) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.places[place{m, n}]; e != nil && e.state == offered {
		t.remove(n, e)
	}
}

// decline takes an address out of use, because the machine that was given it
// found another one there.
func (t *Table) decline(n int, a netip.Addr, m MAC, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.places[place{m, n}]
	if e == nil || e.address != a {
		return false // not its own: nobody takes away others' addresses
	}
	if e.state == bound {
		t.dirty = append(t.dirty, Lease{MAC: m, Address: a})
	}
	delete(t.places, place{m, n})
	t.entries[a] = &entry{address: a, state: taken, until: now.Add(takenHold)}
	return true
}

// Seen notes that a machine uses an address, as its ARP says. It returns the
// machine that was given the address, if that is another one.
func (t *Table) Seen(a netip.Addr, m MAC, now time.Time) (MAC, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.network(a)
	e := t.entries[a]
	switch {
	case n < 0:
		return MAC{}, false
	case e == nil:
		if p := t.pools[n]; p.has(a, Known) || p.has(a, Unknown) {
			t.entries[a] = &entry{a, m, taken, now.Add(takenHold)}
		}
		return MAC{}, false
	case e.state == taken:
		e.mac, e.until = m, now.Add(takenHold)
		return MAC{}, false
	case e.mac == m:
		return MAC{}, false
	case e.state == offered:
		// What was offered is refused when it is asked for, and then another
		// address is found.
		delete(t.places, place{e.mac, n})
		t.entries[a] = &entry{a, m, taken, now.Add(takenHold)}
	}
	return e.mac, true
}
