package switches

import (
	"context"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/muster-hpc/muster"
)

// Pretended is a switch in memory, for tests of what uses one.
type Pretended struct {
	clock muster.Clock
	mu    sync.Mutex
	ports map[string]*Port
	seen  map[string]sight
	sets  int
	fault error
	lies  bool
}

// sight is where an address was last seen.
type sight struct {
	mac  net.HardwareAddr
	vlan int
	port string
	at   time.Time
}

// NewPretended makes a switch with these ports, closed and without a link, in
// network 1.
func NewPretended(clock muster.Clock, names ...string) *Pretended {
	p := &Pretended{clock: clock, ports: map[string]*Port{}, seen: map[string]sight{}}
	for _, n := range names {
		p.ports[n] = &Port{Want: Want{Port: n, VLAN: 1, Closed: true}}
	}
	return p
}

// Plug connects something to a port, or takes it away.
func (p *Pretended) Plug(port string, link bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ports[port].Link = link
}

// Agree makes a port's link carry so many bits/s.
func (p *Pretended) Agree(port string, speed int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ports[port].Speed = speed
}

// Fail has everything fail from now on; nil: nothing.
func (p *Pretended) Fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = err
}

// Lie makes the switch take changes and not apply them, as one does whose configuration
// is locked.
func (p *Pretended) Lie(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lies = on
}

// Changes reports how often something was changed.
func (p *Pretended) Changes() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sets
}

// Send passes a frame of so many bytes in by a port and reports by which ports it
// comes out.
func (p *Pretended) Send(port string, from, to net.HardwareAddr, bytes int) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	in := p.ports[port]
	if in == nil || in.Closed || !in.Link {
		return nil
	}
	in.In.Bytes, in.In.Frames = in.In.Bytes+uint64(bytes), in.In.Frames+1
	p.seen[key(from, in.VLAN)] = sight{slices.Clone(from), in.VLAN, port, p.clock.Now()}
	known, ok := p.seen[key(to, in.VLAN)]
	var out []string
	for name, o := range p.ports {
		if name == port || o.Closed || !o.Link || o.VLAN != in.VLAN || in.Isolated && o.Isolated || ok && known.port != name {
			continue
		}
		o.Out.Bytes, o.Out.Frames = o.Out.Bytes+uint64(bytes), o.Out.Frames+1
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

func key(mac net.HardwareAddr, vlan int) string {
	return string(mac) + string([]byte{byte(vlan >> 8), byte(vlan)})
}

// Ports implements Switch.
func (p *Pretended) Ports(_ context.Context, names ...string) ([]Port, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fault != nil {
		return nil, p.fault
	}
	if err := Absent(p.names(), names); err != nil {
		return nil, err
	}
	return p.read(names), nil
}

// read copies ports. The caller holds p.mu.
func (p *Pretended) read(names []string) []Port {
	var out []Port
	for _, n := range p.names() {
		if len(names) == 0 || slices.Contains(names, n) {
			out = append(out, *p.ports[n])
		}
	}
	return out
}

func (p *Pretended) names() []string {
	var out []string
	for n := range p.ports {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

// Set implements Switch.
func (p *Pretended) Set(_ context.Context, wants ...Want) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fault != nil {
		return p.fault
	}
	if err := Check(p.names(), wants); err != nil {
		return err
	}
	for _, w := range wants {
		port := p.ports[w.Port]
		if port.Want == w || p.lies {
			continue
		}
		p.sets++
		port.Want = w
		for k, s := range p.seen { // what was learned of it is no longer true
			if s.port == w.Port {
				delete(p.seen, k)
			}
		}
	}
	return Differ(p.read(nil), wants)
}

// Addresses implements Switch.
func (p *Pretended) Addresses(context.Context) ([]Address, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fault != nil {
		return nil, p.fault
	}
	var out []Address
	for _, s := range p.seen {
		out = append(out, Address{MAC: s.mac, VLAN: s.vlan, Port: s.port, Age: p.clock.Now().Sub(s.at)})
	}
	slices.SortFunc(out, func(a, b Address) int { return strings.Compare(key(a.MAC, a.VLAN), key(b.MAC, b.VLAN)) })
	return out, nil
}
