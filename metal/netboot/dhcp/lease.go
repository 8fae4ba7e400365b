package dhcp

import (
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
)

// Lease is an address that a machine was given.
type Lease struct {
	MAC     MAC
	Address netip.Addr
	// Until is when it may be given to another machine, unless the Directory
	// holds it. The zero time: it was given back.
	Until time.Time
}

// Leases is where leases survive a restart.
type Leases interface {
	// Load returns the last Lease of each address that was put, without those
	// that were given back.
	Load() ([]Lease, error)
	// Put keeps leases. When it returns without an error they must survive the
	// end of this process; only then are machines told. It is called from one
	// goroutine.
	Put([]Lease) error
}

// appendLine writes a lease as one line of a file: address, MAC, seconds since
// 1970 (0: given back).
func (l Lease) appendLine(b []byte) []byte {
	b = l.Address.AppendTo(b)
	b = append(b, ' ')
	b = append(b, l.MAC.String()...)
	b = append(b, ' ')
	until := int64(0)
	if !l.Until.IsZero() {
		until = l.Until.Unix()
	}
	b = strconv.AppendInt(b, until, 10)
	return append(b, '\n')
}

// parseLine reads what appendLine wrote, without its newline.
func parseLine(s string) (Lease, error) {
	bad := muster.Errorf(muster.ECorrupt, "not a lease: %.80q", s)
	f := strings.Split(s, " ")
	if len(f) != 3 {
		return Lease{}, bad
	}
	a, err := netip.ParseAddr(f[0])
	if err != nil || !a.Is4() {
		return Lease{}, bad
	}
	m, err := ParseMAC(f[1])
	if err != nil || len(f[1]) != 17 {
		return Lease{}, bad
	}
	until, err := strconv.ParseInt(f[2], 10, 64)
	if err != nil || until < 0 || until > 1<<40 {
		return Lease{}, bad
	}
	l := Lease{MAC: m, Address: a}
	if until > 0 {
		l.Until = time.Unix(until, 0)
	}
	return l, nil
}
