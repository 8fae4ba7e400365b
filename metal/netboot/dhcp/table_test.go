package dhcp

import (
	"net/netip"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestNoAddressTwice drives the table at random and holds it against a record of
// what machines were told: an address that a machine was granted is nobody else's
// until its time is over or it gave it back, and while its node is up never.
func TestNoAddressTwice(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(2_000_000_000, 0)
		up := map[MAC]bool{}
		n := networks()[:1]
		tb := newTable(n, ip("10.1.0.1"), func(m MAC) bool { return up[m] })
		type had struct {
			addr  netip.Addr
			until time.Time
		}
		told := map[MAC]had{}
		offers := map[MAC]netip.Addr{}
		standing := func(m MAC) Verdict {
			if m[5]%3 == 0 {
				return Verdict{Standing: Unknown}
			}
			if m[5]%5 == 0 {
				return Verdict{Standing: Known, Address: address(number(ip("10.1.0.50")) + uint32(m[5]))}
			}
			return Verdict{Standing: Known}
		}
		free := func(a netip.Addr, m MAC) {
			for other, h := range told {
				if other != m && h.addr == a && (now.Before(h.until) || up[other]) {
					t.Fatalf("%v was given to %v, and %v has it until %v", a, m, other, h.until)
				}
			}
		}
		for range rapid.IntRange(1, 150).Draw(t, "steps") {
			m := mac(rapid.IntRange(1, 25).Draw(t, "machine"))
			v := standing(m)
			switch rapid.IntRange(0, 8).Draw(t, "what") {
			case 0, 1:
				r := &Request{MAC: m}
				if rapid.Bool().Draw(t, "wants") {
					r.wanted = address(number(ip("10.1.0.0")) + uint32(rapid.IntRange(0, 255).Draw(t, "wanted")))
				}
				if a, why := tb.offer(0, r, v, now); why == "" {
					free(a, m)
					if a == ip("10.1.0.1") {
						t.Fatal("offered the server's own address")
					}
					offers[m] = a
				}
			case 2, 3:
				a, ok := offers[m]
				if !ok || rapid.IntRange(0, 4).Draw(t, "other") == 0 {
					a = address(number(ip("10.1.0.0")) + uint32(rapid.IntRange(0, 255).Draw(t, "asked")))
				}
				if c, _ := tb.claim(0, a, m, v, now, time.Hour); c == granted {
					free(a, m)
					until := now.Add(time.Hour)
					if h := told[m]; h.addr == a && h.until.Sub(now) > 54*time.Minute {
						until = h.until // not prolonged yet
					}
					told[m] = had{a, until}
				}
			case 4:
				if h, ok := told[m]; ok && tb.release(0, h.addr, m) {
					delete(told, m)
				}
			case 5:
				if h, ok := told[m]; ok && tb.decline(0, h.addr, m, now) {
					delete(told, m)
				}
			case 6:
				// A node comes up while its machine has a lease, never after.
				up[m] = rapid.Bool().Draw(t, "up") && (up[m] || now.Before(told[m].until))
			case 7:
				now = now.Add(time.Duration(rapid.IntRange(0, 5000).Draw(t, "seconds")) * time.Second)
			case 8:
				tb.Seen(address(number(ip("10.1.0.0"))+uint32(rapid.IntRange(0, 255).Draw(t, "seen"))), mac(1000), now)
			}
			for a, e := range tb.entries {
				if e.address != a {
					t.Fatalf("%v is filed under %v", e.address, a)
				}
				if p := tb.places[place{e.mac, 0}]; e.state != taken && p != e {
					t.Fatalf("%v has %v, but is not found by it", e.mac, a)
				}
			}
			for p, e := range tb.places {
				if tb.entries[e.address] != e || e.mac != p.mac {
					t.Fatalf("%v is said to have %v, which is not so", p.mac, e.address)
				}
			}
			for _, q := range []*queue{&tb.pools[0].own, &tb.pools[0].discovery} {
				for _, r := range q.ranges {
					for i := range r.size() {
						a := number(r.First) + uint32(i)
						if !q.in[a] && tb.entries[address(a)] == nil {
							t.Fatalf("%v is lost: neither free nor used", address(a))
						}
					}
				}
			}
		}
		// What was kept is what was told.
		leases, _ := tb.unkept()
		last := map[netip.Addr]Lease{}
		for _, l := range leases {
			last[l.Address] = l
		}
		for m, h := range told {
			if e := tb.entries[h.addr]; e != nil && e.mac == m && e.state == bound && last[h.addr].MAC != m {
				t.Fatalf("the lease of %v for %v was not kept", h.addr, m)
			}
		}
	})
}

func TestHeardForgetsTheOldest(t *testing.T) {
	t.Parallel()
	h, now := newHeard(), time.Unix(2_000_000_000, 0)
	for i := range heardMax + 10 {
		h.note(address(uint32(i+1)), mac(i), now)
	}
	if len(h.byIP) != heardMax || len(h.order) != heardMax {
		t.Errorf("%d and %d are remembered", len(h.byIP), len(h.order))
	}
	if _, ok := h.owner(address(1), now); ok {
		t.Error("the oldest is remembered")
	}
	if m, ok := h.owner(address(heardMax), now); !ok || m != mac(heardMax-1) {
		t.Error("a recent one is forgotten")
	}
	if _, ok := h.owner(address(heardMax), now.Add(heardFor)); ok {
		t.Error("believed after a day")
	}
}
