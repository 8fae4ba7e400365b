package gateway

import (
	"crypto/sha256"
	"net/netip"
	"sync"
	"time"

	"github.com/muster-hpc/muster"
)

const (
	ticketTime      = 15 * time.Second // how long one waits for its connection
	ticketsOfOne    = 256              // that wait at once, of one user
	ticketsAtOnce   = 8192
	ticketsTooMany  = "%d of your tickets wait for their connections, which is as many as may"
	ticketsOfGate   = "%d tickets wait for their connections, which is as many as may"
	ticketNotUsed   = "no connection came"
	ticketIsWorn    = "the ticket was used, or its time is over"
	ticketElsewhere = "the ticket is for a connection from another address"
)

// ticket is a way that one connection may go.
type ticket struct {
	opener
	way     muster.DoorWay
	seen    netip.Addr // from where it was asked for; the zero value: not over the network
	expires time.Time
}

// tickets are those that wait, by the digests of their secrets: how long looking one up takes says
// nothing about them.
type tickets struct {
	now func() time.Time
	mu  sync.Mutex
	of  map[secret]ticket
	per map[string]int
}

func newTickets(now func() time.Time) *tickets {
	return &tickets{now: now, of: map[secret]ticket{}, per: map[string]int{}}
}

// give keeps a ticket and returns its secret.
func (t *tickets) give(x ticket) (secret, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.of) >= ticketsAtOnce || t.per[x.user] >= ticketsOfOne {
		t.sweep()
	}
	late := func(format string, n int) error {
		return muster.Errorf(muster.EUnavailable, format, n).Because(muster.ReasonTooMany).WithHint("try again in %s", ticketTime)
	}
	switch {
	case t.per[x.user] >= ticketsOfOne:
		return secret{}, late(ticketsTooMany, t.per[x.user])
	case len(t.of) >= ticketsAtOnce:
		return secret{}, late(ticketsOfGate, len(t.of))
	}
	s := newSecret()
	t.of[sha256.Sum256(s[:])] = x
	t.per[x.user]++
	return s, nil
}

func (t *tickets) sweep() {
	now := t.now()
	for key, x := range t.of {
		if !now.Before(x.expires) {
			t.remove(key, x)
		}
	}
}

func (t *tickets) remove(key secret, x ticket) {
	delete(t.of, key)
	if t.per[x.user]--; t.per[x.user] == 0 {
		delete(t.per, x.user)
	}
}

// take is the ticket with a secret, once. Who comes from another address than it was given to has
// worn it out, too.
func (t *tickets) take(s secret, from netip.Addr) (ticket, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := secret(sha256.Sum256(s[:]))
	x, ok := t.of[key]
	if ok {
		t.remove(key, x)
	}
	refused := func(text string) error {
		return muster.Errorf(muster.EForbidden, "%s", text).Because(muster.ReasonNoAccess).WithHint("connect again")
	}
	switch {
	case !ok || !t.now().Before(x.expires):
		return ticket{}, refused(ticketIsWorn)
	// One client has two addresses where one way is IPv6, or stays in one host.
	case x.seen.IsValid() && x.seen.Is4() == from.Is4() && x.seen.IsLoopback() == from.IsLoopback() && x.seen != from:
		return ticket{}, refused(ticketElsewhere)
	}
	return x, nil
}
