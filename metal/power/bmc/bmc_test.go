package bmc

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster/metal/power/rmcp"
)

const password = "c0rrect-h0rse"

func silent(t testing.TB, change ...func(*Config)) (*BMC, *Pretended) {
	t.Helper()
	chassis := &Pretended{}
	cfg := Config{Chassis: chassis, User: "admin", Password: password}
	for _, f := range change {
		f(&cfg)
	}
	b, err := Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b, chassis
}

// ask gives a datagram to the controller and takes its answer apart.
func ask(t testing.TB, b *BMC, packet []byte) (rmcp.Packet, bool) {
	t.Helper()
	p, err := rmcp.Parse(packet)
	if err != nil {
		t.Fatal(err)
	}
	reply := b.reply(p)
	if reply == nil {
		return rmcp.Packet{}, false
	}
	got, err := rmcp.Parse(reply)
	if err != nil {
		t.Fatalf("the answer cannot be read: %v", err)
	}
	return got, true
}

// login opens a session by hand.
func login(t testing.TB, b *BMC, suite rmcp.Suite, word string) (rmcp.Exchange, rmcp.Keys, rmcp.Status) {
	t.Helper()
	x := rmcp.Exchange{Suite: suite, ConsoleID: 77, Role: rmcp.RoleOperator | 0x10, User: "admin", ConsoleRandom: [16]byte{1, 2, 3}}
	p, _ := ask(t, b, rmcp.Plain(rmcp.TypeOpenRequest, rmcp.OpenRequest{Tag: 1, ConsoleID: x.ConsoleID, Suite: suite}.Bytes()))
	opened, err := rmcp.ParseOpenReply(p.Payload)
	if err != nil || opened.Status != rmcp.StatusDone {
		return x, rmcp.Keys{}, opened.Status
	}
	x.SystemID = opened.SystemID
	p, _ = ask(t, b, rmcp.Plain(rmcp.TypeRAKP1, rmcp.RAKP1{Tag: 2, SystemID: x.SystemID, Random: x.ConsoleRandom, Role: x.Role, User: x.User}.Bytes()))
	two, err := rmcp.ParseRAKP2(p.Payload)
	if err != nil || two.Status != rmcp.StatusDone {
		return x, rmcp.Keys{}, two.Status
	}
	x.SystemRandom, x.GUID = two.Random, two.GUID
	p, _ = ask(t, b, rmcp.Plain(rmcp.TypeRAKP3, rmcp.RAKP3{Tag: 3, SystemID: x.SystemID, Code: x.ConsoleCode([]byte(word))}.Bytes()))
	four, err := rmcp.ParseRAKP4(p.Payload)
	if err != nil {
		t.Fatal(err)
	}
	return x, x.Keys(nil, []byte(word)), four.Status
}

func seal(t testing.TB, k rmcp.Keys, session, number uint32, command byte, f rmcp.Function, data ...byte) []byte {
	t.Helper()
	b, err := k.Seal(rmcp.TypeIPMI, session, number, rmcp.Request{Function: f, Sequence: 1, Command: command, Data: data}.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestReplay: a recorded order is carried out once, and only with privilege.
func TestReplay(t *testing.T) {
	t.Parallel()
	for _, suite := range rmcp.Suites() {
		b, chassis := silent(t)
		x, k, status := login(t, b, suite, password)
		if status != rmcp.StatusDone {
			t.Fatal(status)
		}
		on := seal(t, k, x.SystemID, 1, rmcp.ChassisControl, rmcp.Chassis, 1)
		p, ok := ask(t, b, on)
		if !ok {
			t.Fatal("no answer")
		}
		payload, err := k.Open(p, x.ConsoleID)
		if err != nil {
			t.Fatal(err)
		}
		if r, err := rmcp.ParseResponse(payload); err != nil || r.Code != rmcp.CodeNoPrivilege {
			t.Errorf("a new session may only look: %v, %v", r.Code, err)
		}
		ask(t, b, seal(t, k, x.SystemID, 2, rmcp.SetPrivilege, rmcp.App, rmcp.RoleOperator))
		on = seal(t, k, x.SystemID, 3, rmcp.ChassisControl, rmcp.Chassis, 1)
		if _, ok := ask(t, b, on); !ok || len(chassis.Starts()) != 1 {
			t.Fatal("it did not start")
		}
		_ = chassis.Off(t.Context())
		if _, ok := ask(t, b, on); ok || len(chassis.Starts()) != 1 {
			t.Error("a recorded order was carried out again")
		}
		if _, ok := ask(t, b, seal(t, k, x.SystemID, 1000, rmcp.ChassisControl, rmcp.Chassis, 1)); ok {
			t.Error("a number from far ahead was accepted")
		}
		plain := rmcp.Request{Function: rmcp.Chassis, Command: rmcp.ChassisControl, Data: []byte{1}}.Bytes()
		ask(t, b, rmcp.Plain15(plain))
		ask(t, b, rmcp.Plain(rmcp.TypeIPMI, plain))
		if on, _ := chassis.Power(t.Context()); on {
			t.Error("an order without a session was carried out")
		}
	}
}

// TestLogin: a wrong password opens nothing; nor does a table that is full.
func TestLogin(t *testing.T) {
	t.Parallel()
	b, _ := silent(t, func(c *Config) { c.Sessions = 2 })
	if _, _, status := login(t, b, rmcp.Suites()[0], "wrong"); status != rmcp.StatusBadCode {
		t.Errorf("a wrong password: %v", status)
	}
	if b.Refused() != 1 || b.Sessions() != 0 {
		t.Errorf("%d refused, %d open", b.Refused(), b.Sessions())
	}
	for range 2 {
		if _, _, status := login(t, b, rmcp.Suites()[0], password); status != rmcp.StatusDone {
			t.Fatal(status)
		}
	}
	if _, _, status := login(t, b, rmcp.Suites()[0], password); status != rmcp.StatusNoResources {
		t.Errorf("a third of two sessions: %v", status)
	}
	if _, _, status := login(t, b, rmcp.Suite{ID: 0}, password); status != rmcp.StatusNoSuite {
		t.Errorf("without encryption: %v", status)
	}
}

type frozen struct{ at time.Time }

func (f *frozen) Now() time.Time                         { return f.at }
func (f *frozen) After(d time.Duration) <-chan time.Time { return time.After(d) }

// TestTimeRunsOut: boot flags fall away after a minute, sessions when idle.
func TestTimeRunsOut(t *testing.T) {
	t.Parallel()
	clock := &frozen{time.Now()}
	b, _ := silent(t, func(c *Config) { c.Clock = clock })
	flags := []byte{bootFlags, flagsValid, 4, 0, 0, 0}
	b.setOption(flags)
	if o := b.override(); o.Device != DeviceNetwork || !o.once {
		t.Errorf("set: %+v", o)
	}
	clock.at = clock.at.Add(61 * time.Second)
	if b.override().set {
		t.Error("the flags hold after a minute")
	}
	b.setOption([]byte{bootKeepFlags, 8})
	b.setOption(flags)
	clock.at = clock.at.Add(time.Hour)
	if !b.override().set {
		t.Error("the flags fell away though they were to stay")
	}
	x, k, _ := login(t, b, rmcp.Suites()[0], password)
	clock.at = clock.at.Add(61 * time.Second)
	if _, ok := ask(t, b, seal(t, k, x.SystemID, 1, rmcp.GetChassisStatus, rmcp.Chassis)); ok {
		t.Error("an idle session still answers")
	}
}

// FuzzReply gives the controller any datagram: it must not crash, and nothing
// that is not signed switches the machine.
func FuzzReply(f *testing.F) {
	f.Add(rmcp.Plain(rmcp.TypeOpenRequest, rmcp.OpenRequest{Suite: rmcp.Suites()[0]}.Bytes()))
	f.Add(rmcp.Plain(rmcp.TypeRAKP1, rmcp.RAKP1{User: "admin"}.Bytes()))
	f.Add(rmcp.Plain(rmcp.TypeRAKP3, rmcp.RAKP3{}.Bytes()))
	f.Add(rmcp.Plain15(rmcp.Request{Function: rmcp.App, Command: rmcp.GetChannelCapabilities, Data: []byte{0x8e, 4}}.Bytes()))
	f.Add(rmcp.Plain15(rmcp.Request{Function: rmcp.App, Command: rmcp.GetCipherSuites, Data: []byte{0xe, 0, 0xff}}.Bytes()))
	f.Fuzz(func(t *testing.T, packet []byte) {
		b, chassis := silent(t)
		p, err := rmcp.Parse(packet)
		if err != nil {
			return
		}
		if reply := b.reply(p); len(reply) > 0 && bytes.Contains(reply, []byte(password)) {
			t.Error("the password is in an answer")
		}
		if on, _ := chassis.Power(t.Context()); on {
			t.Error("it was switched on")
		}
	})
}

// FuzzCommand gives any command inside a session.
func FuzzCommand(f *testing.F) {
	f.Add(byte(0), byte(2), []byte{1})
	f.Add(byte(0), byte(8), []byte{5, 0x80, 4, 0, 0, 0})
	f.Add(byte(0), byte(9), []byte{5, 0, 0})
	f.Add(byte(6), byte(0x3c), []byte{1, 2, 3, 4})
	f.Fuzz(func(t *testing.T, function, command byte, data []byte) {
		b, _ := silent(t)
		s := &ipmiSession{role: rmcp.RoleAdministrator}
		b.command(s, rmcp.Request{Function: rmcp.Function(function), Command: command, Data: data})
	})
}

// FuzzRedfish sends any body to what can be changed.
func FuzzRedfish(f *testing.F) {
	f.Add("PATCH", `{"Boot":{"BootSourceOverrideEnabled":"Once","BootSourceOverrideTarget":"Pxe"}}`, `"1"`)
	f.Add("POST", `{"ResetType":"On"}`, "")
	f.Add("LOGIN", `{"UserName":"admin","Password":"x"}`, "")
	f.Fuzz(func(t *testing.T, method, body, match string) {
		b, _ := silent(t)
		path := pathSystem
		switch method {
		case "POST":
			path = pathReset
		case "LOGIN":
			method, path = "POST", pathSessions
		default:
			method = "PATCH"
		}
		q := httptest.NewRequest(method, path, strings.NewReader(body))
		q.SetBasicAuth("admin", password)
		q.Header["If-Match"] = []string{match}
		w := httptest.NewRecorder()
		b.newServer().Handler.ServeHTTP(w, q)
		if w.Code >= http.StatusInternalServerError {
			t.Errorf("%s %q: %d", method, body, w.Code)
		}
	})
}

// TestForgetsLate: the override is shown, and the start is told nothing.
func TestForgetsLate(t *testing.T) {
	t.Parallel()
	b, chassis := silent(t)
	b.Break(Faults{ForgetsLate: true})
	b.setOption([]byte{bootFlags, flagsValid, 4, 0, 0, 0})
	if o := b.override(); o.Device != DeviceNetwork {
		t.Errorf("it shows %+v", o)
	}
	if err := b.perform(t.Context(), actOn); err != nil {
		t.Fatal(err)
	}
	if s := chassis.Starts(); len(s) != 1 || s[0].Device != DeviceDefault {
		t.Errorf("its starts: %v", s)
	}
}
