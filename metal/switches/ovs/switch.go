package ovs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal/switches"
)

// Config says where a switch is.
type Config struct {
	// Dir holds its sockets: db.sock, vswitchd.ctl and BRIDGE.mgmt.
	Dir    string
	Bridge string
	// Env is what the programs that speak to it get beside this process's.
	Env []string
}

// Files of a switch in its directory.
const (
	Database = "db.sock"
	Control  = "vswitchd.ctl"
)

// closedVLAN is the network of closed ports, and nowhere the network of the
// bridge's own port, which nobody uses.
const (
	closedVLAN = 4094
	nowhere    = 4095
)

// What the database keeps of a closed port for when it is opened.
const (
	keptVLAN     = "muster-vlan"
	keptIsolated = "muster-isolated"
)

// patience is how long one command may take.
const patience = 10 * time.Second

// Switch is a bridge of Open vSwitch.
type Switch struct {
	c  Config
	mu sync.Mutex // one change at a time: what was read is what is changed
}

var _ switches.Switch = (*Switch)(nil)

// New drives the switch in a directory. It touches nothing yet.
func New(c Config) *Switch { return &Switch{c: c} }

// Ports implements switches.Switch.
func (s *Switch) Ports(ctx context.Context, names ...string) ([]switches.Port, error) {
	rows, err := s.rows(ctx)
	if err != nil {
		return nil, err
	}
	if err := switches.Absent(rowNames(rows), names); err != nil {
		return nil, err
	}
	ports, _, err := s.read(ctx, rows, names)
	return ports, err
}

// read joins what the database says with what the switch itself does, and names the
// ports that are closed by one of two locks only: they count as open, and are set
// whatever is wanted of them.
func (s *Switch) read(ctx context.Context, rows []row, names []string) (out []switches.Port, torn map[string]bool, err error) {
	text, err := s.ofctl(ctx, "dump-ports-desc")
	if err != nil {
		return nil, nil, err
	}
	links, err := parseLinks(text)
	if err != nil {
		return nil, nil, err
	}
	if text, err = s.ofctl(ctx, "dump-ports", "--no-names"); err != nil {
		return nil, nil, err
	}
	counters, err := parseCounters(text)
	if err != nil {
		return nil, nil, err
	}
	torn = map[string]bool{}
	for _, r := range rows {
		if len(names) > 0 && !slices.Contains(names, r.name) {
			continue
		}
		p := switches.Port{Want: r.want()}
		l, there := links[r.name]
		if torn[r.name] = !there || l.down != p.Closed; torn[r.name] {
			p.Closed = false
		}
		p.Link, p.Speed = l.link, l.speed
		c := counters[l.number]
		p.In, p.Out = c[0], c[1]
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b switches.Port) int { return strings.Compare(a.Port, b.Port) })
	return out, torn, nil
}

// Set implements switches.Switch.
func (s *Switch) Set(ctx context.Context, wants ...switches.Want) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	rows, err := s.rows(ctx)
	if err != nil {
		return err
	}
	if err := switches.Check(rowNames(rows), wants); err != nil {
		return err
	}
	ports, torn, err := s.read(ctx, rows, nil)
	if err != nil {
		return err
	}
	var change []switches.Want
	for _, w := range wants {
		i := slices.IndexFunc(ports, func(p switches.Port) bool { return p.Port == w.Port })
		if i < 0 || ports[i].Want != w || torn[w.Port] {
			change = append(change, w)
		}
	}
	if len(change) > 0 {
		if err := s.change(ctx, change); err != nil {
			return err
		}
		if rows, err = s.rows(ctx); err != nil {
			return err
		}
		if ports, torn, err = s.read(ctx, rows, nil); err != nil {
			return err
		}
	}
	for i, p := range ports {
		if torn[p.Port] {
			ports[i].VLAN = 0 // as nobody can have wanted it
		}
	}
	if err := switches.Differ(ports, wants); err != nil {
		return err
	}
	return s.prove(ctx, wants)
}

// change writes desired settings into the database, and waits until the switch has taken
// them, then switches links. A port that closes is out of its network first.
func (s *Switch) change(ctx context.Context, wants []switches.Want) error {
	var args []string
	for _, w := range wants {
		tag, isolated := w.VLAN, w.Isolated
		if w.Closed {
			tag, isolated = closedVLAN, true
		}
		args = append(args, "--", "set", "port", w.Port, "tag="+strconv.Itoa(tag), "protected="+strconv.FormatBool(isolated))
		if w.Closed {
			args = append(args, "external_ids:"+keptVLAN+"="+strconv.Itoa(w.VLAN), "external_ids:"+keptIsolated+"="+strconv.FormatBool(w.Isolated))
		} else {
			args = append(args, "--", "remove", "port", w.Port, "external_ids", keptVLAN, "--", "remove", "port", w.Port, "external_ids", keptIsolated)
		}
	}
	if _, err := s.vsctl(ctx, args...); err != nil {
		return err
	}
	for _, w := range wants {
		way := "up"
		if w.Closed {
			way = "down"
		}
		if _, err := s.ofctl(ctx, "mod-port", w.Port, way); err != nil {
			return err
		}
	}
	return nil
}

// prove follows a frame to all from every port that is to be closed, and wants to
// see it dropped.
func (s *Switch) prove(ctx context.Context, wants []switches.Want) error {
	e := muster.Errorf(muster.EUnavailable, "a closed port passes frames").WithHint("look at the switch")
	for _, w := range wants {
		if !w.Closed {
			continue
		}
		text, err := s.appctl(ctx, "ofproto/trace", s.c.Bridge, "in_port="+w.Port+",dl_src=02:00:00:00:00:01,dl_dst=ff:ff:ff:ff:ff:ff")
		if err != nil {
			return err
		}
		if actions, ok := parseTrace(text); !ok || actions != "drop" {
			e.Problems = append(e.Problems, muster.Problem{Field: w.Port, Message: "the switch would do: " + actions})
		}
	}
	if len(e.Problems) > 0 {
		return e
	}
	return nil
}

// Addresses implements switches.Switch.
func (s *Switch) Addresses(ctx context.Context) ([]switches.Address, error) {
	text, err := s.ofctl(ctx, "dump-ports-desc")
	if err != nil {
		return nil, err
	}
	links, err := parseLinks(text)
	if err != nil {
		return nil, err
	}
	byNumber := map[string]string{}
	for name, l := range links {
		byNumber[l.number] = name
	}
	if text, err = s.appctl(ctx, "fdb/show", s.c.Bridge); err != nil {
		return nil, err
	}
	return parseAddresses(text, byNumber)
}

func (s *Switch) rows(ctx context.Context) ([]row, error) {
	text, err := s.vsctl(ctx, "--format=json", "--columns=name,tag,protected,external_ids", "list", "port")
	if err != nil {
		return nil, err
	}
	rows, err := parseRows([]byte(text))
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(rows, func(r row) bool { return r.name == s.c.Bridge }), nil
}

func (s *Switch) vsctl(ctx context.Context, args ...string) (string, error) {
	return s.run(ctx, "ovs-vsctl", append([]string{"--db=unix:" + filepath.Join(s.c.Dir, Database), "--timeout=" + strconv.Itoa(int(patience.Seconds()))}, args...)...)
}

// ofctl speaks to the bridge itself.
func (s *Switch) ofctl(ctx context.Context, command string, args ...string) (string, error) {
	return s.run(ctx, "ovs-ofctl", append([]string{"--timeout=" + strconv.Itoa(int(patience.Seconds())), command, "unix:" + filepath.Join(s.c.Dir, s.c.Bridge+".mgmt")}, args...)...)
}

func (s *Switch) appctl(ctx context.Context, args ...string) (string, error) {
	return s.run(ctx, "ovs-appctl", append([]string{"--timeout=" + strconv.Itoa(int(patience.Seconds())), "-t", filepath.Join(s.c.Dir, Control)}, args...)...)
}

func (s *Switch) run(ctx context.Context, program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience+time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...) //nolint:gosec // a program of Open vSwitch, arguments that were checked
	// Nothing of the host's own switch, wherever a program would look by itself.
	cmd.Env = append(os.Environ(), "OVS_RUNDIR="+s.c.Dir, "OVS_DBDIR="+s.c.Dir, "OVS_LOGDIR="+s.c.Dir)
	cmd.Env = append(cmd.Env, s.c.Env...)
	var problem strings.Builder
	cmd.Stderr = &problem
	out, err := cmd.Output()
	if err != nil {
		if ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Canceled) {
			return "", ctx.Err()
		}
		return "", muster.Errorf(muster.EUnavailable, "the switch in %s does not answer", s.c.Dir).
			WithHint("see whether it runs: muster lab status").Wrap(fmt.Errorf("%s: %w: %s", program, err, strings.TrimSpace(problem.String())))
	}
	return string(out), nil
}
