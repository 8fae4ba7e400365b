package machine

import (
	"net/netip"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"pgregory.net/rapid"
)

func TestStates(t *testing.T) {
	t.Parallel()
	events := []event{started, restarted, systemUp, panicked, wentOff, broke}
	for from, want := range map[State][]State{
		//       started  restarted systemUp panicked wentOff broke
		Asleep:  {Booting, Asleep, Asleep, Asleep, Asleep, Asleep},
		Booting: {Booting, Booting, Running, Crashed, Asleep, Crashed},
		Running: {Running, Booting, Running, Crashed, Asleep, Crashed},
		Crashed: {Crashed, Booting, Crashed, Crashed, Asleep, Crashed},
	} {
		for i, e := range events {
			if got := next(from, e); got != want[i] {
				t.Errorf("%s after event %d is %s, not %s", from, e, got, want[i])
			}
		}
	}
}

// Whatever happens, power comes on by a start only, and is off after it was taken.
func TestPowerComesFromStarts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := Asleep
		for _, e := range rapid.SliceOf(rapid.SampledFrom([]event{started, restarted, systemUp, panicked, wentOff, broke})).Draw(t, "events") {
			was := s
			s = next(s, e)
			if !was.On() && s.On() && e != started {
				t.Fatalf("event %d switched it on", e)
			}
			if e == wentOff && s.On() {
				t.Fatalf("%s is on without power", s)
			}
			if s == Gone {
				t.Fatal("an event takes its process away")
			}
		}
	})
}

func sound() Config {
	return Config{Name: "m01", Cores: 1, Memory: 1 << 30, NICs: []NIC{{Management, "52:00:00:00:00:01", "m01-mgmt"}, {Message, "52:00:00:00:00:02", "m01-msg"}},
		BMC: netip.MustParseAddr("10.77.128.1"), NVMe: 64 << 20}
}

func TestFaultCheck(t *testing.T) {
	t.Parallel()
	poor := sound()
	poor.BMC, poor.NVMe = netip.Addr{}, 0
	for _, c := range []struct {
		f        Fault
		in       Config
		problems int
	}{
		{Fault{Kind: Hang}, sound(), 0},
		{Fault{Kind: SlowNIC, NIC: Message, Rate: 1e8}, sound(), 0},
		{Fault{Kind: BootLoop, After: muster.Duration(time.Second)}, sound(), 0},
		{Fault{Kind: BMCUnreachable}, sound(), 0},
		{Fault{Kind: BMCUnreachable}, poor, 1},
		{Fault{Kind: DiskFails}, sound(), 0},
		{Fault{Kind: DiskFails}, poor, 1},
		{Fault{Kind: "fire"}, sound(), 1},
		{Fault{Kind: "fire", NIC: "third", Rate: 5, After: -1}, sound(), 5},
		{Fault{Kind: Hang, NIC: Message}, sound(), 1},
		{Fault{Kind: NICDown, Rate: 1e9}, sound(), 1},
		{Fault{Kind: SlowNIC, Rate: 5}, sound(), 1},
	} {
		err := c.f.Check(c.in)
		n := 0
		if e, ok := err.(*muster.Error); ok { //nolint:errorlint // it is not wrapped
			n = len(e.Problems)
		}
		if n != c.problems {
			t.Errorf("%+v: %v", c.f, err)
		}
	}
	if len(FaultKinds()) != 9 {
		t.Error(FaultKinds())
	}
}

// Nothing that is read from a machine's directory or its socket makes a machine
// that lacks what one needs, or one that does what there is not.
func FuzzConfig(f *testing.F) {
	f.Add([]byte(`{"document":"lab-machine/1","content":{"name":"m01","cores":1,"memory_bytes":1073741824,"nics":[{"use":"management","mac":"52:00:00:00:00:01","port":"p"}]}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := parseConfig(b)
		if err != nil {
			if code := muster.CodeOf(err); code != muster.ECorrupt && code != muster.EConflict {
				t.Fatal(err)
			}
			return
		}
		for _, n := range c.NICs {
			if len(n.mac()) != 6 {
				t.Fatalf("%+v", c)
			}
		}
	})
}

func FuzzRequest(f *testing.F) {
	f.Add([]byte(`{"do":"fault","fault":{"kind":"slow-nic","nic":"message","rate":100000000}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := parseRequest(b); err == nil && r.Do == "" {
			t.Fatal("a request for nothing")
		}
	})
}
