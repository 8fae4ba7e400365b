package ipmi

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal/power"
	"github.com/muster-hpc/muster/metal/power/bmc"
	"github.com/muster-hpc/muster/metal/power/rmcp"
)

func secret(context.Context) ([]byte, error) { return []byte("c0rrect-h0rse"), nil }

func start(t *testing.T, change ...func(*bmc.Config)) (*bmc.BMC, *bmc.Pretended, *driver) {
	t.Helper()
	chassis := &bmc.Pretended{}
	cfg := bmc.Config{Chassis: chassis, User: "admin", Password: "c0rrect-h0rse", IPMI: "127.0.0.1:0"}
	for _, f := range change {
		f(&cfg)
	}
	b, err := bmc.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	d, err := open(power.Target{Machine: "m1", Secret: secret, Address: muster.PowerAddress{
		Kind: muster.PowerIPMI, Address: fmt.Sprintf("127.0.0.1:%d", b.IPMI()), User: "admin"}}, power.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close(context.Background()) })
	return b, chassis, d.(*driver)
}

// forger sits on the way: forged packets come before each true one.
type forger struct {
	net.Conn
	forged [][]byte
	heard  [][]byte // what the controller sent
}

func (f *forger) Read(b []byte) (int, error) {
	if len(f.forged) > 0 {
		n := copy(b, f.forged[0])
		f.forged = f.forged[1:]
		return n, nil
	}
	n, err := f.Conn.Read(b)
	if err == nil {
		f.heard = append(f.heard, append([]byte(nil), b[:n]...))
	}
	return n, err
}

// TestForgedAnswers: a machine is on, and somebody on the way says off, in
// every way open to who does not know the password.
func TestForgedAnswers(t *testing.T) {
	t.Parallel()
	_, chassis, d := start(t)
	if _, err := d.State(t.Context()); err != nil {
		t.Fatal(err)
	}
	f := &forger{Conn: d.s.conn}
	d.s.conn = f
	// All 64 request numbers, so that a recorded "off" has the number of a
	// later request.
	for range 64 {
		if r, err := d.State(t.Context()); err != nil || r.State != power.Off {
			t.Fatalf("%v, %v", r, err)
		}
	}
	recorded := f.heard
	if err := chassis.On(t.Context(), bmc.Next{}); err != nil {
		t.Fatal(err)
	}
	var forged [][]byte
	for number := range byte(64) {
		off := rmcp.Response{Function: rmcp.Chassis, Sequence: number, Command: rmcp.GetChassisStatus, Data: []byte{0, 0, 0}}.Bytes()
		forged = append(forged, rmcp.Plain15(off), rmcp.Plain(rmcp.TypeIPMI, off))
		for _, suite := range rmcp.Suites() {
			x := d.s.x
			x.Suite = suite
			sealed, err := x.Keys(nil, []byte("guessed")).Seal(rmcp.TypeIPMI, d.s.x.ConsoleID, d.s.seen+1, off)
			if err != nil {
				t.Fatal(err)
			}
			forged = append(forged, sealed)
		}
	}
	forged = append(forged, recorded...)
	forged = append(forged, []byte{6, 0, 0xff, 7, 6, 0xc0, 1, 2, 3, 4, 1, 0, 0, 0, 3, 0, 9, 9, 9}, nil, []byte{6})
	for range 64 {
		f.forged = append([][]byte(nil), forged...)
		r, err := d.State(t.Context())
		if err != nil || r.State != power.On {
			t.Fatalf("believed %v, %v", r, err)
		}
	}
}

// TestNothingRepeats: session numbers and nonces are new each time, on both
// sides.
func TestNothingRepeats(t *testing.T) {
	t.Parallel()
	_, _, d := start(t)
	seen := map[any]bool{}
	for range 20 {
		if _, err := d.State(t.Context()); err != nil {
			t.Fatal(err)
		}
		x := d.s.x
		for _, v := range []any{x.ConsoleID, x.SystemID, x.ConsoleRandom, x.SystemRandom} {
			if seen[v] {
				t.Errorf("%v was there before", v)
			}
			seen[v] = true
		}
		if err := d.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRole: an account that may only look can look, and is told that it may
// not switch.
func TestRole(t *testing.T) {
	t.Parallel()
	_, _, d := start(t, func(c *bmc.Config) { c.Role = rmcp.RoleUser })
	err := d.On(t.Context())
	if muster.CodeOf(err) != muster.EForbidden {
		t.Errorf("got %v", err)
	}
}

// TestSecretFails: a password that cannot be fetched is no empty password.
func TestSecretFails(t *testing.T) {
	t.Parallel()
	b, _, d := start(t)
	d.t.Secret = func(context.Context) ([]byte, error) { return nil, net.ErrClosed }
	if _, err := d.State(t.Context()); muster.CodeOf(err) != muster.EUnauth {
		t.Errorf("got %v", err)
	}
	if b.Refused() != 0 {
		t.Error("something was tried as a password")
	}
}

// TestDroppedSession: a controller that forgot the session gets a new one.
func TestDroppedSession(t *testing.T) {
	t.Parallel()
	b, _, d := start(t)
	if _, err := d.State(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.DropSessions()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := d.State(ctx); err != nil {
		t.Errorf("after the session was dropped: %v", err)
	}
}

// TestGivenUpSessionIsFreed: who gives up leaves no session behind.
func TestGivenUpSessionIsFreed(t *testing.T) {
	t.Parallel()
	b, _, d := start(t)
	if _, err := d.State(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.Break(bmc.Faults{Latency: 200 * time.Millisecond})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := d.State(ctx); muster.CodeOf(err) != muster.ETimeout {
		t.Errorf("got %v", err)
	}
	for end := time.Now().Add(2 * time.Minute); b.Sessions() > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("a session is left")
		}
	}
}

// TestFallsBack: what our session does not understand is given to ipmitool,
// once and for all; a wrong password is not.
func TestFallsBack(t *testing.T) {
	b, _, d := start(t)
	if !d.findTool() {
		t.Skip("ipmitool is not installed")
	}
	b.Break(bmc.Faults{RefusesSessions: true})
	_, err := d.State(t.Context())
	if err == nil || !d.tooled {
		t.Fatalf("the program was not tried: %v", err)
	}
	b.Break(bmc.Faults{})
	if r, err := d.State(t.Context()); err != nil || r.State != power.Off {
		t.Errorf("by ipmitool: %v, %v", r, err)
	}
	if err := d.On(t.Context()); err != nil {
		t.Error(err)
	}
	if r, err := d.State(t.Context()); err != nil || r.State != power.On {
		t.Errorf("by ipmitool: %v, %v", r, err)
	}
	b.Break(bmc.Faults{OtherPassword: true})
	if _, err := d.State(t.Context()); muster.CodeOf(err) != muster.EUnauth {
		t.Errorf("a wrong password, by ipmitool: %v", err)
	}

	b2, _, d2 := start(t)
	b2.Break(bmc.Faults{OtherPassword: true})
	if _, err := d2.State(t.Context()); muster.CodeOf(err) != muster.EUnauth || d2.tooled {
		t.Errorf("a wrong password was tried with another program: %v", err)
	}
}

func TestToolFlagsHoldNoSecret(t *testing.T) {
	t.Parallel()
	_, _, d := start(t)
	for _, f := range d.toolFlags() {
		if f == "c0rrect-h0rse" || f == "-P" || f == "-E" {
			t.Errorf("%q is an argument", f)
		}
	}
}

// FuzzTool reads any text as ipmitool's.
func FuzzTool(f *testing.F) {
	f.Add("Chassis Power is on\n")
	f.Add("Error: Unable to establish IPMI v2 / RMCP+ session\n")
	f.Fuzz(func(t *testing.T, out string) {
		if on, err := parseToolState(out); on && err != nil {
			t.Error("on, with an error")
		}
		if err := toolError(out, net.ErrClosed); muster.CodeOf(err) == "" {
			t.Error("no error")
		}
	})
}

// FuzzAnswer has a controller that knows the password send any message.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte{0}, byte(1))
	f.Fuzz(func(t *testing.T, payload []byte, _ byte) {
		if len(payload) > 700 {
			return
		}
		here, there := net.Pipe()
		defer here.Close()
		defer there.Close()
		x := rmcp.Exchange{Suite: rmcp.Suites()[0], ConsoleID: 1, SystemID: 2}
		s := &session{conn: here, x: x, keys: x.Keys(nil, []byte("p")), open: true}
		go func() {
			buf := make([]byte, rmcp.MaxPacket)
			_, _ = there.Read(buf)
			sealed, _ := s.keys.Seal(rmcp.TypeIPMI, 1, 1, payload)
			_, _ = there.Write(sealed)
		}()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		_, _ = s.isOn(ctx)
	})
}
