package network

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Way is how a machine may reach outside networks.
type Way int

// Ways out.
const (
	WayNone  Way = iota // not at all
	WayProxy            // through the proxy on the gateway, at ProxyPort
	WayNAT              // directly, with the host's address
)

// egress knows which machine has which way out. What is wanted and what is in
// force are told apart so that many changes at once become one transaction.
type egress struct {
	apply  sync.Mutex // held while rules change
	mu     sync.Mutex
	ways   map[netip.Addr]Way
	want   int64 // version of ways
	have   int64 // version that the rules show
	uplink bool
}

// ResetWays sets the ways of all machines, after a restart: rules in force stay
// until then, so whoever was connected stays connected.
func (r *Rack) ResetWays(ctx context.Context, ways map[netip.Addr]Way) error {
	e := &r.egress
	e.mu.Lock()
	e.ways = maps.Clone(ways)
	e.want++
	mine := e.want
	e.mu.Unlock()
	return r.applyWays(ctx, mine)
}

// SetWay sets the way out of one machine, by its management address, and
// returns when the rules say so. A restarted server calls ResetWays first.
func (r *Rack) SetWay(ctx context.Context, machine netip.Addr, way Way) error {
	e := &r.egress
	e.mu.Lock()
	if e.ways[machine] == way {
		mine := e.want
		e.mu.Unlock()
		return r.applyWays(ctx, mine)
	}
	if way == WayNone {
		delete(e.ways, machine)
	} else {
		if e.ways == nil {
			e.ways = map[netip.Addr]Way{}
		}
		e.ways[machine] = way
	}
	e.want++
	mine := e.want
	e.mu.Unlock()
	return r.applyWays(ctx, mine)
}

// applyWays brings the rules up to a version at least.
func (r *Rack) applyWays(ctx context.Context, version int64) error {
	e := &r.egress
	e.apply.Lock()
	defer e.apply.Unlock()
	e.mu.Lock()
	if e.have >= version {
		e.mu.Unlock()
		return nil
	}
	ways, target := maps.Clone(e.ways), e.want
	e.mu.Unlock()
	sets := map[Way][]string{}
	for a, w := range ways {
		sets[w] = append(sets[w], a.String())
	}
	nat := len(sets[WayNAT]) > 0
	if nat && !e.uplink {
		if err := r.addUplink(ctx); err != nil {
			return err
		}
		e.uplink = true
	}
	script := setText("proxied", sets[WayProxy]) + setText("routed", sets[WayNAT])
	if err := r.nft(ctx, script); err != nil {
		return err
	}
	if !nat && e.uplink {
		if err := r.dropUplink(ctx); err != nil {
			return err
		}
		e.uplink = false
	}
	e.mu.Lock()
	e.have = target
	e.mu.Unlock()
	return nil
}

func setText(name string, addrs []string) string {
	slices.Sort(addrs)
	text := fmt.Sprintf("flush set inet muster %s\n", name)
	if len(addrs) > 0 {
		text += fmt.Sprintf("add element inet muster %s { %s }\n", name, strings.Join(addrs, ", "))
	}
	return text
}

// SetLicencePorts has machines reach these ports of the gateway, and no others beside those of
// agents and of the proxy. Whose connection it is, is for who listens there to decide.
func (r *Rack) SetLicencePorts(ctx context.Context, ports []uint16) error {
	list := make([]string, len(ports))
	for i, p := range ports {
		list[i] = strconv.Itoa(int(p))
	}
	return r.nft(ctx, setText("licences", list))
}
