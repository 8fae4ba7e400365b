package ipmi

import (
	"context"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal/power"
	"github.com/muster-hpc/muster/metal/power/bmc"
	"github.com/muster-hpc/muster/metal/power/rmcp"
)

const kg = "k\x7fey of the rack"

func keyed(c *bmc.Config) { c.Key = kg }

func give(key string) func(context.Context) ([]byte, error) {
	return func(context.Context) ([]byte, error) { return []byte(key), nil }
}

// TestKey: a controller with a K_G opens sessions to who has it, with each suite.
func TestKey(t *testing.T) {
	t.Parallel()
	for _, s := range rmcp.Suites() {
		_, _, d := start(t, keyed)
		d.t.Key, d.quirk.suite = give(kg), s.ID
		if err := d.On(t.Context()); err != nil {
			t.Fatalf("suite %d: %v", s.ID, err)
		}
		if r, err := d.State(t.Context()); err != nil || r.State != power.On {
			t.Errorf("suite %d: %v, %v", s.ID, r, err)
		}
	}
	// Where the controller has none, an empty one is none.
	_, _, d := start(t)
	d.t.Key = give("")
	if _, err := d.State(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestWrongKey: who lacks the key, or has another, is told of it and of the password, and
// ipmitool is not tried: tries are counted. The key is in no message.
func TestWrongKey(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		key    func(context.Context) ([]byte, error)
		change []func(*bmc.Config)
	}{
		"none given":        {nil, []func(*bmc.Config){keyed}},
		"another":           {give("another"), []func(*bmc.Config){keyed}},
		"where there is no": {give("another"), nil},
	} {
		_, _, d := start(t, c.change...)
		d.t.Key = c.key
		_, err := d.State(t.Context())
		var e *muster.Error
		if muster.CodeOf(err) != muster.EUnauth || muster.ReasonOf(err) != muster.ReasonControllerRefuses {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if r := err.(*refusal); r != nil {
			e = r.err
		}
		if !strings.Contains(e.Message, "K_G") || !strings.Contains(e.Hint, "--power-key-file") || !strings.Contains(e.Hint, "password") || strings.Contains(e.Message+e.Hint, "another\x00") || d.tooled {
			t.Errorf("%s: %s / %s", name, e.Message, e.Hint)
		}
	}
}

// TestKeyFails: a key that cannot be fetched is no empty key.
func TestKeyFails(t *testing.T) {
	t.Parallel()
	b, _, d := start(t)
	d.t.Key = func(context.Context) ([]byte, error) { return nil, context.DeadlineExceeded }
	if _, err := d.State(t.Context()); muster.CodeOf(err) != muster.EUnauth {
		t.Errorf("got %v", err)
	}
	if b.Refused() != 0 {
		t.Error("it was tried without")
	}
}

// TestToolHasTheKey: the program opens sessions with the key, too.
func TestToolHasTheKey(t *testing.T) {
	_, _, d := start(t, keyed)
	if !d.findTool() {
		t.Skip("ipmitool is not installed")
	}
	d.tooled, d.t.Key = true, give(kg)
	if r, err := d.State(t.Context()); err != nil || r.State != power.Off {
		t.Errorf("%v, %v", r, err)
	}
	d.t.Key = give("another")
	if _, err := d.State(t.Context()); muster.CodeOf(err) != muster.EUnauth || !strings.Contains(err.Error(), "K_G") {
		t.Errorf("another key: %v", err)
	}
	d.t.Key = give("zero\x00byte")
	if _, err := d.State(t.Context()); muster.CodeOf(err) != muster.EInvalid {
		t.Errorf("a key that it cannot take: %v", err)
	}
}
