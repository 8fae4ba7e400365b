package switches

import (
	"context"
	"fmt"
	"slices"

	"github.com/muster-hpc/muster"
)

// Check says what is wrong with desired ports, all at once. have are the ports that there
// are. For drivers.
func Check(have []string, wants []Want) error {
	bad := muster.Errorf(muster.EInvalid, "the switch cannot be set so")
	absent := muster.Errorf(muster.ENotFound, "the switch has no such port").WithHint("it has: %s", list(have))
	seen := map[string]bool{}
	for _, w := range wants {
		switch {
		case !slices.Contains(have, w.Port):
			absent.Problems = append(absent.Problems, muster.Problem{Field: w.Port, Message: "there is no such port"})
		case seen[w.Port]:
			bad.Problems = append(bad.Problems, muster.Problem{Field: w.Port, Message: "it is asked for twice", Hint: "name every port once"})
		}
		if w.VLAN < 1 || w.VLAN > MaxVLAN {
			bad.Problems = append(bad.Problems, muster.Problem{Field: w.Port, Message: fmt.Sprintf("%d is not a network", w.VLAN), Hint: fmt.Sprintf("use 1 to %d", MaxVLAN)})
		}
		seen[w.Port] = true
	}
	switch {
	case len(absent.Problems) > 0:
		absent.Problems = append(absent.Problems, bad.Problems...)
		return absent
	case len(bad.Problems) > 0:
		return bad
	}
	return nil
}

// Absent is the error of ports that are not there; nil when all are. For drivers.
func Absent(have, asked []string) error {
	e := muster.Errorf(muster.ENotFound, "the switch has no such port").WithHint("it has: %s", list(have))
	for _, name := range asked {
		if !slices.Contains(have, name) {
			e.Problems = append(e.Problems, muster.Problem{Field: name, Message: "there is no such port"})
		}
	}
	if len(e.Problems) > 0 {
		return e
	}
	return nil
}

// Differ reports where ports are not as they were wanted; nil when they are. It is
// how a driver proves what it did.
func Differ(ports []Port, wants []Want) error {
	e := muster.Errorf(muster.EUnavailable, "the switch did not apply the change").WithHint("look at the switch; ask again")
	for _, w := range wants {
		i := slices.IndexFunc(ports, func(p Port) bool { return p.Port == w.Port })
		switch {
		case i < 0:
			e.Problems = append(e.Problems, muster.Problem{Field: w.Port, Message: "the port is gone"})
		case ports[i].Want != w:
			e.Problems = append(e.Problems, muster.Problem{Field: w.Port, Message: fmt.Sprintf("it is %s, not %s", ports[i].Want, w)})
		}
	}
	if len(e.Problems) > 0 {
		return e
	}
	return nil
}

// String is "closed" or "VLAN 12, isolated".
func (w Want) String() string {
	s := fmt.Sprintf("VLAN %d", w.VLAN)
	if w.Isolated {
		s += ", isolated"
	}
	if w.Closed {
		s += ", closed"
	}
	return s
}

// Close closes ports and leaves the rest of them as it is. When it returns nil, what
// hangs on them is cut off.
func Close(ctx context.Context, s Switch, names ...string) error { return change(ctx, s, true, names) }

// Open opens ports that were closed.
func Open(ctx context.Context, s Switch, names ...string) error { return change(ctx, s, false, names) }

func change(ctx context.Context, s Switch, closed bool, names []string) error {
	if len(names) == 0 {
		return nil
	}
	ports, err := s.Ports(ctx, names...)
	if err != nil {
		return err
	}
	wants := make([]Want, len(ports))
	for i, p := range ports {
		wants[i] = p.Want
		wants[i].Closed = closed
	}
	return s.Set(ctx, wants...)
}

func list(names []string) string {
	const most = 8
	if len(names) == 0 {
		return "no port at all"
	}
	s := ""
	for i, n := range names {
		if i == most {
			return fmt.Sprintf("%s and %d more", s, len(names)-most)
		}
		if i > 0 {
			s += ", "
		}
		s += n
	}
	return s
}
