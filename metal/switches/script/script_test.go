package script_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal/switches"
	"github.com/muster-hpc/muster/metal/switches/script"
	"github.com/muster-hpc/muster/metal/switches/switchtest"
)

// TestMain makes the test program be the site's program, too: it asks the switch of a test.
func TestMain(m *testing.M) {
	if socket := os.Getenv("MUSTER_TEST_SWITCH"); socket != "" {
		os.Exit(ask(socket))
	}
	os.Exit(m.Run())
}

// ask passes an operation and its input on, and prints the answer.
func ask(socket string) int {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return 1
	}
	input, _ := io.ReadAll(os.Stdin)
	fmt.Fprintf(conn, "%s %s\n%s", os.Args[1], os.Getenv("MUSTER_SWITCH"), input)
	_ = conn.(*net.UnixConn).CloseWrite()
	if _, err := io.Copy(os.Stdout, conn); err != nil {
		return 1
	}
	return 0
}

// rig is a switch in memory behind a program.
type rig struct {
	p *switches.Pretended
	s switches.Switch
}

func (r rig) Switch() switches.Switch { return r.s }
func (r rig) Ports() []string         { return []string{"eth 1/1", "eth 1/2", "eth 1/3", "eth 1/4"} }
func (r rig) Send(_ *testing.T, port string, f []byte) []string {
	return r.p.Send(port, net.HardwareAddr(f[6:12]), net.HardwareAddr(f[:6]), len(f))
}
func (r rig) Unplug(_ *testing.T, port string) { r.p.Plug(port, false) }
func (r rig) Plug(_ *testing.T, port string)   { r.p.Plug(port, true) }
func (r rig) Restart() func(*testing.T)        { return nil }

func newRig(t *testing.T) switchtest.Rig {
	t.Helper()
	dir, err := os.MkdirTemp("", "sw") // a short path: a socket's name is
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := rig{p: switches.NewPretended(muster.SystemClock{}, rig{}.Ports()...)}
	for _, p := range r.Ports() {
		r.p.Plug(p, true)
	}
	r.s = script.New(script.Config{Program: program(t, fmt.Sprintf("MUSTER_TEST_SWITCH=%s exec %s \"$@\"", socket, self)), Name: "sw-1"})
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			answer(t, conn, r.p)
		}
	}()
	return r
}

// program writes a program of the site.
func program(t *testing.T, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "switch")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// answer is what the site's program makes of the switch's own language.
func answer(t *testing.T, conn net.Conn, p *switches.Pretended) {
	defer conn.Close()
	text, _ := io.ReadAll(conn)
	line, input, _ := strings.Cut(string(text), "\n")
	type object = map[string]any
	var out any
	switch line {
	case "ports sw-1":
		ports, err := p.Ports(t.Context())
		if err != nil {
			return
		}
		list := []object{}
		count := func(c switches.Counter) object {
			return object{"bytes": c.Bytes, "frames": c.Frames, "dropped": c.Dropped, "errors": c.Errors}
		}
		for i := range ports {
			x := ports[len(ports)-1-i] // in no certain order
			list = append(list, object{"port": x.Port, "vlan": x.VLAN, "isolated": x.Isolated, "closed": x.Closed, "link": x.Link, "speed_bps": x.Speed, "in": count(x.In), "out": count(x.Out), "maker": "x"})
		}
		out = list
	case "addresses sw-1":
		addresses, err := p.Addresses(t.Context())
		if err != nil {
			return
		}
		list := []object{}
		for _, a := range addresses {
			list = append(list, object{"mac": a.MAC.String(), "vlan": a.VLAN, "port": a.Port, "age_seconds": a.Age.Seconds()})
		}
		out = list
	case "set sw-1":
		var wants []struct {
			Port             string
			VLAN             int
			Isolated, Closed bool
		}
		if err := json.Unmarshal([]byte(input), &wants); err != nil {
			t.Error(err)
		}
		for _, w := range wants {
			_ = p.Set(t.Context(), switches.Want{Port: w.Port, VLAN: w.VLAN, Isolated: w.Isolated, Closed: w.Closed})
		}
		return
	default:
		t.Errorf("the program was called %q", line)
	}
	_ = json.NewEncoder(conn).Encode(out)
}

func TestSuite(t *testing.T) {
	t.Parallel()
	switchtest.Run(t, newRig)
}

// A program that says it did what it did not is found out, and what is so already is left
// alone.
func TestWhatItSaysIsReadBack(t *testing.T) {
	t.Parallel()
	r := newRig(t).(rig)
	w := switches.Want{Port: r.Ports()[0], VLAN: 5}
	r.p.Lie(true)
	if err := r.s.Set(t.Context(), w); muster.CodeOf(err) != muster.EUnavailable {
		t.Fatalf("a lie is believed: %v", err)
	}
	r.p.Lie(false)
	for range 2 {
		if err := r.s.Set(t.Context(), w); err != nil || r.p.Changes() != 1 {
			t.Fatalf("%d changes, %v", r.p.Changes(), err)
		}
	}
}

func TestHowProgramsFail(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body string
		code muster.Code
		says string
	}{
		"cannot":           {"echo no such feature >&2; exit 2", muster.EInvalid, "no such feature"},
		"refused":          {"exit 3", muster.EUnauth, ""},
		"busy":             {"exit 4", muster.EUnavailable, "not now"},
		"unknown":          {"exit 5", muster.ENotFound, ""},
		"fails":            {"printf 'one\\033[2J\\ntwo\\n' >&2; exit 1", muster.EUnavailable, "one"},
		"prints nonsense":  {"echo hello", muster.ECorrupt, ""},
		"prints nothing":   {"true", muster.ECorrupt, ""},
		"nameless":         {`echo '[{"vlan": 3}]'`, muster.ECorrupt, ""},
		"twice":            {`echo '[{"port": "a", "vlan": 3}, {"port": "a", "vlan": 4}]'`, muster.ECorrupt, "twice"},
		"no such network":  {`echo '[{"port": "a", "vlan": 5000}]'`, muster.ECorrupt, ""},
		"prints no end":    {"yes | head -c 6000000", muster.ECorrupt, "MiB"},
		"never ends":       {"sleep 1000", muster.EUnavailable, "in time"},
		"leaves something": {"sleep 1000 & echo hello", muster.ECorrupt, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := script.New(script.Config{Program: program(t, c.body), Patience: 3 * time.Second})
			began := time.Now()
			_, err := s.Ports(t.Context())
			if muster.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.says) || strings.ContainsAny(err.Error(), "\x1b\n") {
				t.Errorf("%v, want %s", err, c.code)
			}
			if name == "never ends" == (time.Since(began) < 2*time.Second) {
				t.Errorf("it took %s", time.Since(began))
			}
		})
	}
	s := script.New(script.Config{Program: "/nonexistent/switch"})
	if err := s.Set(t.Context(), switches.Want{Port: "a", VLAN: 1}); muster.CodeOf(err) != muster.EUnavailable {
		t.Error(err)
	}
}

// Nothing of this server's environment reaches the program, and its words are no shell's.
func TestItsEnvironment(t *testing.T) {
	t.Setenv("MUSTER_SECRET_OF_THE_SERVER", "x")
	s := script.New(script.Config{Name: "sw; touch /tmp/x $(id)", Program: program(t, `
[ -z "$MUSTER_SECRET_OF_THE_SERVER" ] && [ "$#" = 1 ] && [ "$MUSTER_SWITCH" = 'sw; touch /tmp/x $(id)' ] && [ "$PWD" = / ] || exit 9
echo '[{"port": "a", "vlan": 1}]'`)})
	if ports, err := s.Ports(t.Context(), "a"); err != nil || len(ports) != 1 {
		t.Error(ports, err)
	}
}
