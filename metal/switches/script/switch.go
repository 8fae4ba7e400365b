// Package script drives switches by a program of the site: for makers' own command lines and
// interfaces, or for what a site manages its network with.
//
// The program is called as
//
//	PROGRAM ports|set|addresses
//
// with the name of the switch in its environment (see docs/operators/switches.md). For set
// it reads the ports that are wanted from its standard input; for the others it prints what
// the switch says. Both are JSON. It answers by its exit status, and is killed, with all that
// it started, when its time is over. What it says it did is read back.
package script

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal/switches"
)

// Config says which program drives which switch.
type Config struct {
	Program string // absolute path
	// Name tells the program which of its switches is meant. "": it has one.
	Name string
	// Patience is how long one call may take. Zero: a minute.
	Patience time.Duration
}

// Switch is a switch behind a program.
type Switch struct {
	c  Config
	mu sync.Mutex // one change at a time: what was read is what is changed
}

var _ switches.Switch = (*Switch)(nil)

// New drives a switch by a program. It calls nothing yet.
func New(c Config) *Switch {
	if c.Patience <= 0 {
		c.Patience = time.Minute
	}
	return &Switch{c: c}
}

// want is how a port is to be, as the program reads it.
type want struct {
	Port     string `json:"port"`
	VLAN     int    `json:"vlan"`
	Isolated bool   `json:"isolated"`
	Closed   bool   `json:"closed"`
}

// port is how a port is, as the program says it.
type port struct {
	want
	Link  bool    `json:"link"`
	Speed int64   `json:"speed_bps"`
	In    counter `json:"in"`
	Out   counter `json:"out"`
}

type counter struct {
	Bytes   uint64 `json:"bytes"`
	Frames  uint64 `json:"frames"`
	Dropped uint64 `json:"dropped"`
	Errors  uint64 `json:"errors"`
}

// address is where the switch saw a MAC.
type address struct {
	MAC  string  `json:"mac"`
	VLAN int     `json:"vlan"`
	Port string  `json:"port"`
	Age  float64 `json:"age_seconds"`
}

// Ports implements switches.Switch.
func (s *Switch) Ports(ctx context.Context, names ...string) ([]switches.Port, error) {
	all, err := s.read(ctx)
	if err != nil {
		return nil, err
	}
	if err := switches.Absent(namesOf(all), names); err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return all, nil
	}
	return slices.DeleteFunc(all, func(p switches.Port) bool { return !slices.Contains(names, p.Port) }), nil
}

func (s *Switch) read(ctx context.Context) ([]switches.Port, error) {
	out, err := s.call(ctx, "ports", nil)
	if err != nil {
		return nil, err
	}
	var list []port
	if err := decode("ports", out, &list); err != nil {
		return nil, err
	}
	ports := make([]switches.Port, len(list))
	for i, p := range list {
		if p.Port == "" || p.VLAN < 0 || p.VLAN > 4095 || p.Speed < 0 {
			return nil, nonsense("ports", "entry %d names no port, or has values that no port has", i+1)
		}
		ports[i] = switches.Port{Want: switches.Want(p.want), Link: p.Link, Speed: p.Speed, In: switches.Counter(p.In), Out: switches.Counter(p.Out)}
	}
	slices.SortFunc(ports, func(a, b switches.Port) int { return strings.Compare(a.Port, b.Port) })
	for i := 1; i < len(ports); i++ {
		if ports[i].Port == ports[i-1].Port {
			return nil, nonsense("ports", "port %s is there twice", ports[i].Port)
		}
	}
	return ports, nil
}

// Set implements switches.Switch.
func (s *Switch) Set(ctx context.Context, wants ...switches.Want) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	have, err := s.read(ctx)
	if err != nil {
		return err
	}
	if err := switches.Check(namesOf(have), wants); err != nil {
		return err
	}
	var change []want
	for _, w := range wants {
		if !slices.ContainsFunc(have, func(p switches.Port) bool { return p.Want == w }) {
			change = append(change, want(w))
		}
	}
	if len(change) == 0 {
		return nil
	}
	text, err := json.Marshal(change)
	if err != nil {
		return err
	}
	if _, err := s.call(ctx, "set", append(text, '\n')); err != nil {
		return err
	}
	if have, err = s.read(ctx); err != nil {
		return err
	}
	return switches.Differ(have, wants)
}

// Addresses implements switches.Switch.
func (s *Switch) Addresses(ctx context.Context) ([]switches.Address, error) {
	out, err := s.call(ctx, "addresses", nil)
	if err != nil {
		return nil, err
	}
	var list []address
	if err := decode("addresses", out, &list); err != nil {
		return nil, err
	}
	addresses := make([]switches.Address, len(list))
	for i, a := range list {
		mac, err := net.ParseMAC(a.MAC)
		if err != nil || len(mac) != 6 || a.Port == "" || !(a.Age >= 0 && a.Age < 1e9) {
			return nil, nonsense("addresses", "entry %d is no address at a port", i+1)
		}
		addresses[i] = switches.Address{MAC: mac, VLAN: a.VLAN, Port: a.Port, Age: time.Duration(a.Age * float64(time.Second))}
	}
	return addresses, nil
}

func namesOf(ports []switches.Port) []string {
	out := make([]string, len(ports))
	for i, p := range ports {
		out[i] = p.Port
	}
	return out
}

// decode reads what the program printed. Fields that it has besides ours are its own.
func decode(operation string, out []byte, into any) error {
	if err := json.Unmarshal(out, into); err != nil {
		return nonsense(operation, "it is no list in JSON")
	}
	return nil
}

func nonsense(operation, format string, args ...any) error {
	return muster.Errorf(muster.ECorrupt, "what the site's program printed for %q cannot be used: %s", operation, fmt.Sprintf(format, args...)).
		WithHint("run it by hand as docs/operators/switches.md says")
}
