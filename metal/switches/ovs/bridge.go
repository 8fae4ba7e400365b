package ovs

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// MakeBridge makes the bridge, in user space, and takes ports of the devices that
// are named: new ones closed, in network 1. Those that it has stay as they are.
func (s *Switch) MakeBridge(ctx context.Context, devices ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	args := []string{"--", "--may-exist", "add-br", s.c.Bridge,
		"--", "set", "bridge", s.c.Bridge, "datapath_type=netdev", "fail_mode=standalone", "stp_enable=false", "rstp_enable=false", "mcast_snooping_enable=false",
		// The bridge's own port is nobody's: it may not hear what passes.
		"--", "set", "port", s.c.Bridge, "vlan_mode=trunk", "trunks=" + strconv.Itoa(nowhere)}
	if _, err := s.vsctl(ctx, args...); err != nil {
		return err
	}
	if err := s.await(ctx); err != nil {
		return err
	}
	rows, err := s.rows(ctx)
	if err != nil {
		return err
	}
	have := rowNames(rows)
	args = nil
	for _, d := range devices {
		if slices.Contains(have, d) {
			continue
		}
		args = append(args, "--", "add-port", s.c.Bridge, d,
			"--", "set", "port", d, "vlan_mode=access", "tag="+strconv.Itoa(closedVLAN), "protected=true",
			"external_ids:"+keptVLAN+"=1", "external_ids:"+keptIsolated+"=false")
	}
	if len(args) > 0 {
		if _, err := s.vsctl(ctx, args...); err != nil {
			return err
		}
	}
	// A link that is off or on says what the database says, also after a restart.
	if rows, err = s.rows(ctx); err != nil {
		return err
	}
	for _, r := range rows {
		way := "up"
		if r.want().Closed {
			way = "down"
		}
		if _, err := s.ofctl(ctx, "mod-port", r.name, way); err != nil {
			return err
		}
	}
	return nil
}

// await waits until the bridge answers: after a restart of the switch that is when
// it has taken up what the database says.
func (s *Switch) await(ctx context.Context) error {
	for end := time.Now().Add(patience); ; {
		_, err := s.ofctl(ctx, "show")
		if err == nil || time.Now().After(end) || ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// policeBurst is how much may come at once, of what is allowed in a second: parts.
const policeBurst = 10

// Police limits what comes into the switch by a port to so many bits/s; 0 lifts
// the limit. It lasts as long as the switch runs.
func (s *Switch) Police(ctx context.Context, port string, bits int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, err := s.ofctl(ctx, "dump-ports-desc")
	if err != nil {
		return err
	}
	links, err := parseLinks(text)
	if err != nil {
		return err
	}
	l, ok := links[port]
	if !ok {
		return fmt.Errorf("the switch has no port %s", port)
	}
	meter := "meter=" + l.number
	if _, err := s.ofctl(ctx, "del-flows", "in_port="+l.number); err != nil {
		return err
	}
	if _, err := s.openFlow13(ctx, "del-meter", meter); err != nil {
		return err
	}
	if bits == 0 {
		return nil
	}
	kilobits := max(1, bits/1000)
	if _, err := s.openFlow13(ctx, "add-meter", fmt.Sprintf("%s,kbps,burst,band=type=drop,rate=%d,burst_size=%d", meter, kilobits, max(1, kilobits/policeBurst))); err != nil {
		return err
	}
	_, err = s.openFlow13(ctx, "add-flow", fmt.Sprintf("priority=10,in_port=%s,actions=meter:%s,NORMAL", l.number, l.number))
	return err
}

func (s *Switch) openFlow13(ctx context.Context, command string, args ...string) (string, error) {
	return s.run(ctx, "ovs-ofctl", append([]string{"-O", "OpenFlow13", "--timeout=" + strconv.Itoa(int(patience.Seconds())), command, "unix:" + s.c.Dir + "/" + s.c.Bridge + ".mgmt"}, args...)...)
}
