package power

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/muster-hpc/muster"
)

// rack is pretended hardware: what is true, and what its drivers do.
type rack struct {
	mu      sync.Mutex
	on      map[muster.MachineID]bool
	talking map[string]int // commands at a controller now
	most    int            // the most at one controller
	calls   []string
	fail    func(what string, n int) error
	n       map[string]int
	takes   time.Duration
	able    Abilities
	closed  int
	// flickers: each look finds another state.
	flickers bool
}

type fakeDriver struct {
	r *rack
	t Target
}

func newRack() *rack {
	return &rack{on: map[muster.MachineID]bool{}, talking: map[string]int{}, n: map[string]int{}, takes: 10 * time.Millisecond,
		able: Abilities{NetworkBoot: true, Off: true, State: true, ProvesOff: true}}
}

func (r *rack) drivers() Drivers {
	return Drivers{muster.PowerIPMI: {New: func(t Target, _ Deps) (Driver, error) { return &fakeDriver{r, t}, nil }}}
}

func (d *fakeDriver) Abilities() Abilities { return d.r.able }
func (d *fakeDriver) Close(context.Context) error {
	d.r.mu.Lock()
	defer d.r.mu.Unlock()
	d.r.closed++
	return nil
}

func (r *rack) closings() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.closed
}

func (d *fakeDriver) command(ctx context.Context, what string, f func()) error {
	r, key := d.r, d.t.controller()
	r.mu.Lock()
	r.talking[key]++
	r.most = max(r.most, r.talking[key])
	r.calls = append(r.calls, what)
	r.n[what]++
	n := r.n[what]
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		r.talking[key]--
		r.mu.Unlock()
	}()
	select {
	case <-time.After(r.takes):
	case <-ctx.Done():
		return ctx.Err()
	}
	if r.fail != nil {
		if err := r.fail(what, n); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
	return nil
}

func (d *fakeDriver) On(ctx context.Context) error {
	return d.command(ctx, "on", func() { d.r.on[d.t.Machine] = true })
}

func (d *fakeDriver) Off(ctx context.Context) error {
	return d.command(ctx, "off", func() { d.r.on[d.t.Machine] = false })
}

func (d *fakeDriver) State(ctx context.Context) (got Reading, err error) {
	err = d.command(ctx, "state", func() {
		got = Reading{State: Off, Proof: ProofController, Text: "it says off"}
		if d.r.flickers {
			d.r.on[d.t.Machine] = !d.r.on[d.t.Machine]
		}
		if d.r.on[d.t.Machine] {
			got = Reading{State: On, Proof: ProofController, Text: "it says on"}
		}
	})
	return got, err
}

func target(m, host string) Target {
	return Target{Machine: muster.MachineID(m), Secret: password, Address: muster.PowerAddress{Kind: muster.PowerIPMI, Address: host, User: "u"}}
}

func (r *rack) control(parts Deps) *Control {
	return NewControl(Config{Drivers: r.drivers(), Deps: parts})
}

// TestOneCommandAtATime: however many ask, a controller hears one at a time;
// different ones are spoken to at once.
func TestOneCommandAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRack()
		c := r.control(Deps{})
		begin := time.Now()
		var wg sync.WaitGroup
		for i := range 40 {
			wg.Go(func() {
				if _, err := c.State(t.Context(), target(fmt.Sprint("m", i), fmt.Sprint("host", i%4))); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if r.most != 1 {
			t.Errorf("%d commands at one controller at the same time", r.most)
		}
		if took := time.Since(begin); took != 100*time.Millisecond {
			t.Errorf("4 controllers of 10 machines took %v, want 100 ms", took)
		}
		c.Close()
		if r.closings() != 40 {
			t.Errorf("%d of 40 drivers closed", r.closings())
		}
	})
}

// TestRetries: the table, row by row.
func TestRetries(t *testing.T) {
	t.Parallel()
	for _, rule := range retryRules() {
		synctest.Test(t, func(t *testing.T) {
			r := newRack()
			r.fail = func(_ string, n int) error {
				if n < 3 {
					return muster.Errorf(rule.Code, "no")
				}
				return nil
			}
			c := r.control(Deps{})
			defer c.Close()
			_, err := c.State(t.Context(), target("m", "h"))
			want := 1
			if rule.Retry {
				want = 3
			}
			if r.n["state"] != want || (err == nil) != rule.Retry {
				t.Errorf("%s: %d tries, %v", rule.Code, r.n["state"], err)
			}
			if err != nil && !strings.HasPrefix(err.Error(), "m: ") {
				t.Errorf("%s: %v does not say of which machine", rule.Code, err)
			}
		})
	}
}

// An account that is not let in is not tried again for a while: it would be locked. Another
// password is, at once.
func TestRefusalsAreRemembered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRack()
		r.fail = func(string, int) error { return muster.Errorf(muster.EUnauth, "the password is wrong") }
		c := r.control(Deps{})
		defer c.Close()
		m := target("m", "h")
		password := "wrong"
		m.Secret = func(context.Context) ([]byte, error) { return []byte(password), nil }
		look := func(tries int) {
			t.Helper()
			if _, err := c.State(t.Context(), m); muster.CodeOf(err) != muster.EUnauth || r.n["state"] != tries || strings.Contains(err.Error(), password+"!") {
				t.Errorf("%d tries, not %d: %v", r.n["state"], tries, err)
			}
		}
		look(1)
		look(1)
		if _, err := c.State(t.Context(), m); !strings.Contains(err.Error(), "not asked again before") {
			t.Error(err)
		}
		_, _ = c.State(t.Context(), target("other", "h")) // of the same controller
		look(2)
		password = "right"
		look(3)
		look(3)
		m.Address.User = "another"
		look(4)
		time.Sleep(DefaultTimes().Refused)
		look(5)
		r.fail = nil
		time.Sleep(DefaultTimes().Refused)
		if _, err := c.State(t.Context(), m); err != nil || r.n["state"] != 6 {
			t.Errorf("%d tries: %v", r.n["state"], err)
		}
	})
}

// A session does not outlive its password.
func TestPasswordEndsSession(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRack()
		c := r.control(Deps{})
		defer c.Close()
		m := target("m", "h")
		for i, password := range []string{"one", "one", "two", "two", "one"} {
			m.Secret = func(context.Context) ([]byte, error) { return []byte(password), nil }
			if _, err := c.State(t.Context(), m); err != nil || r.closings() != i/2 {
				t.Errorf("%d: %d sessions were closed, %v", i, r.closings(), err)
			}
		}
	})
}

func TestGivesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRack()
		r.fail = func(string, int) error { return muster.Errorf(muster.EUnavailable, "deaf") }
		c := r.control(Deps{})
		defer c.Close()
		_, err := c.State(t.Context(), target("m", "h"))
		if r.n["state"] != DefaultTimes().Tries || muster.CodeOf(err) != muster.EUnavailable || !strings.Contains(err.Error(), "(4 tries)") {
			t.Errorf("%d tries, %v", r.n["state"], err)
		}
	})
}

// TestDeadline: a controller that hangs costs one deadline a try.
func TestDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRack()
		r.takes = time.Hour
		c := NewControl(Config{Drivers: r.drivers(), Times: Times{Tries: 1, Command: 3 * time.Second}})
		defer c.Close()
		begin := time.Now()
		_, err := c.State(t.Context(), target("m", "h"))
		if muster.CodeOf(err) != muster.ETimeout || time.Since(begin) != 3*time.Second {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
	})
}

// TestNewerOrderWins: a fence ends the boot that waits for its turn or is under
// way, and nothing of the boot comes after it.
func TestNewerOrderWins(t *testing.T) {
	t.Parallel()
	for wait := time.Millisecond; wait < 120*time.Millisecond; wait += 5 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			r := newRack()
			r.on["m"] = true
			c := r.control(Deps{})
			defer c.Close()
			booted := make(chan error, 1)
			go func() {
				_, err := c.Boot(t.Context(), target("m", "h"))
				booted <- err
			}()
			time.Sleep(wait)
			rec := c.Fence(t.Context(), target("m", "h"))
			if err := <-booted; err != nil && muster.CodeOf(err) != muster.EConflict {
				t.Errorf("after %v: the boot ended with %v", wait, err)
			}
			time.Sleep(time.Minute)
			if !rec.Proven || r.on["m"] {
				t.Errorf("after %v: fenced %v, and it is on: %v (%v)", wait, rec.Proven, r.on["m"], r.calls)
			}
		})
	}
}

type fakeLiveness struct {
	when func() time.Time
}

func (e fakeLiveness) Heard(context.Context, muster.MachineID) (time.Time, error) {
	return e.when(), nil
}

type ports struct{ err error }

func (p ports) Link(context.Context, muster.MachineID) (Link, error) { return Link{}, nil }
func (p ports) Close(context.Context, muster.MachineID) error        { return p.err }

// word is what humans say.
type word struct {
	by     string
	asked  *int
	forgot *int
}

func (w word) Off(context.Context, muster.MachineID, string) (string, error) {
	if w.asked != nil {
		*w.asked++
	}
	if w.by == "" {
		return "", muster.Errorf(muster.EUnavailable, "human")
	}
	return w.by, nil
}

func (w word) Forget(context.Context, muster.MachineID) error {
	if w.forgot != nil {
		*w.forgot++
	}
	return nil
}

// TestHumanIsAskedLast: not where something proves it, and what was said is forgotten
// before the machine is switched on.
func TestHumanIsAskedLast(t *testing.T) {
	t.Parallel()
	deaf := muster.Errorf(muster.EUnavailable, "deaf")
	for _, c := range []struct {
		name          string
		able          Abilities
		port          SwitchPort
		asked, forgot int
	}{
		{"the controller proves it", Abilities{Off: true, State: true, ProvesOff: true}, nil, 0, 1},
		{"its ports prove it", Abilities{}, ports{}, 0, 1},
		{"nothing does", Abilities{}, ports{deaf}, 1, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRack()
			r.able, r.on["m"] = c.able, true
			asked, forgot := 0, 0
			control := r.control(Deps{SwitchPort: c.port, ManualFence: word{"root", &asked, &forgot}})
			defer control.Close()
			if rec := control.Fence(t.Context(), target("m", "h")); !rec.Proven || asked != c.asked || forgot != c.forgot {
				t.Errorf("%s: asked %d times, forgot %d times: %+v", c.name, asked, forgot, rec)
			}
			r.able = Abilities{Off: true, State: true}
			before := forgot
			if _, err := control.Boot(t.Context(), target("m", "h")); err != nil || forgot != before+1 {
				t.Errorf("%s: a boot forgot %d times: %v", c.name, forgot-before, err)
			}
		})
	}
}

// TestFence: what proves, and what does not.
func TestFence(t *testing.T) {
	t.Parallel()
	deafErr := muster.Errorf(muster.EUnavailable, "deaf")
	for _, c := range []struct {
		name   string
		parts  Deps
		able   Abilities
		fail   error
		proven bool
		says   string
	}{
		{"the controller", Deps{}, Abilities{Off: true, State: true, ProvesOff: true}, nil, true, "2 "},
		{"and nothing is heard", Deps{Liveness: fakeLiveness{func() time.Time { return time.Time{} }}}, Abilities{Off: true, State: true}, nil, true, "heard"},
		{"but it is heard", Deps{Liveness: fakeLiveness{time.Now}}, Abilities{Off: true, State: true}, nil, false, "heard"},
		{"heard, and its ports close", Deps{Liveness: fakeLiveness{time.Now}, SwitchPort: ports{}}, Abilities{Off: true, State: true}, nil, true, "closed"},
		{"deaf, and its ports close", Deps{SwitchPort: ports{}}, Abilities{Off: true, State: true}, deafErr, true, "closed"},
		{"deaf", Deps{}, Abilities{Off: true, State: true}, deafErr, false, "deaf"},
		{"deaf, and its ports do not", Deps{SwitchPort: ports{deafErr}}, Abilities{Off: true, State: true}, deafErr, false, "deaf"},
		{"deaf, and nobody says so", Deps{ManualFence: word{}}, Abilities{Off: true, State: true}, deafErr, false, "human"},
		{"deaf, and somebody says so", Deps{ManualFence: word{by: "root"}}, Abilities{Off: true, State: true}, deafErr, true, "root "},
		{"deaf, heard, and somebody says so", Deps{ManualFence: word{by: "root"}, Liveness: fakeLiveness{time.Now}}, Abilities{Off: true, State: true}, deafErr, false, "root "},
		{"somebody says so of what cannot be told", Deps{ManualFence: word{by: "root"}, SwitchPort: ports{deafErr}}, Abilities{Off: true}, nil, true, "root "},
		{"it cannot be told", Deps{}, Abilities{Off: true}, nil, false, ""},
		{"it cannot be switched off", Deps{}, Abilities{}, nil, false, "power off"},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRack()
			r.able, r.on["m"] = c.able, true
			r.fail = func(string, int) error { return c.fail }
			control := r.control(c.parts)
			defer control.Close()
			rec := control.Fence(t.Context(), target("m", "h"))
			if rec.Proven != c.proven || !strings.Contains(fmt.Sprint(rec.Steps), c.says) {
				t.Errorf("%s: proven %v, %+v", c.name, rec.Proven, rec.Steps)
			}
		})
	}
}

// TestFlicker: one reading of off is not off.
func TestFlicker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRack()
		r.on["m"] = true
		c := r.control(Deps{})
		defer c.Close()
		r.flickers = true
		got, err := c.Off(t.Context(), target("m", "h"))
		if err == nil || got.Proven() {
			t.Errorf("a machine that flickers is off: %+v", got.Steps)
		}
	})
}

// TestBootEndsFence: a boot that comes while a fence still listens leaves
// nothing proven.
func TestBootEndsFence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRack()
		c := r.control(Deps{Liveness: fakeLiveness{func() time.Time { return time.Time{} }}, SwitchPort: ports{}})
		defer c.Close()
		fenced := make(chan muster.FenceRecord, 1)
		go func() { fenced <- c.Fence(t.Context(), target("m", "h")) }()
		time.Sleep(2 * time.Second) // it is off, and listened to
		if _, err := c.Boot(t.Context(), target("m", "h")); err != nil {
			t.Fatal(err)
		}
		if rec := <-fenced; rec.Proven || !r.on["m"] {
			t.Errorf("proven: %+v", rec)
		}
	})
}

func TestSessionsAreKeptForAWhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRack()
		c := r.control(Deps{})
		for range 5 {
			if _, err := c.State(t.Context(), target("m", "h")); err != nil {
				t.Fatal(err)
			}
			time.Sleep(5 * time.Second)
		}
		if r.closings() != 0 {
			t.Error("a session in use was closed")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if r.closings() != 1 {
			t.Errorf("an idle session was closed %d times", r.closings())
		}
		c.Close()
	})
}
