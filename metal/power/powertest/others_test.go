package powertest

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/executable"
	"github.com/muster-hpc/muster/metal/power"
	"github.com/muster-hpc/muster/metal/power/drivers"
)

// TestScript runs the suite with a site's program that keeps the state of a
// switched socket in a file.
func TestScript(t *testing.T) {
	t.Parallel()
	Suite(t, func(t *testing.T) Subject {
		dir := t.TempDir()
		program, state := filepath.Join(dir, "power"), filepath.Join(dir, "state")
		text := "#!/bin/sh\nread -r password\n[ \"$password\" = '" + password + "' ] || exit 3\n" +
			"case $1 in\non|off) echo $1 >" + state + " ;;\nstate) cat " + state + " 2>/dev/null || echo off ;;\n*) exit 2 ;;\nesac\n"
		if err := executable.Write(program, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
		return Subject{
			Drivers: drivers.All(), Password: password,
			Target: power.Target{Machine: "m1", Rack: "r1", Secret: secret, Address: muster.PowerAddress{Kind: muster.PowerScript, Address: program, Proves: true}},
			Powered: func() bool {
				b, _ := os.ReadFile(state)
				return string(b) == "on\n"
			},
		}
	})
}

// sleeper is a machine without a controller: it wakes by a magic packet.
type sleeper struct {
	mu    sync.Mutex
	on    bool
	heard time.Time
	fell  time.Time
}

func (s *sleeper) set(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !on {
		s.fell = time.Now()
	} else if time.Since(s.fell) < 100*time.Millisecond {
		return // it goes down: it is not asleep yet
	}
	s.on = on
}

func (s *sleeper) powered() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.on
}

func (s *sleeper) Heard(context.Context, muster.MachineID) (time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.on {
		s.heard = time.Now()
		return s.heard, nil
	}
	return time.Time{}, nil // a test does not wait for silence
}

func (s *sleeper) Link(context.Context, muster.MachineID) (power.Link, error) {
	return power.Link{Up: s.powered()}, nil
}
func (s *sleeper) Close(context.Context, muster.MachineID) error {
	return muster.Errorf(muster.EUnavailable, "the switch does not answer")
}
func (s *sleeper) Off(context.Context, muster.MachineID) error { s.set(false); return nil }

// TestWOL runs the suite with a machine that listens for its packet, and whose
// agent switches it off.
func TestWOL(t *testing.T) {
	t.Parallel()
	Suite(t, func(t *testing.T) Subject {
		pc, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { pc.Close() })
		s := &sleeper{}
		wanted := bytes.Repeat([]byte{0x52, 0x54, 0, 0, 0, 1}, 16)
		go func() {
			buf := make([]byte, 2000)
			for {
				n, _, err := pc.ReadFrom(buf)
				if err != nil {
					return
				}
				if bytes.Contains(buf[:n], wanted) {
					s.set(true)
				}
			}
		}()
		return Subject{
			Drivers: drivers.All(),
			Target: power.Target{Machine: "m1", Rack: "r1", MACs: []string{"52:54:00:00:00:01"},
				Address: muster.PowerAddress{Kind: muster.PowerWOL, Address: pc.LocalAddr().String()}},
			Parts:   power.Deps{Agent: s, Liveness: s, SwitchPort: s},
			Powered: s.powered,
		}
	})
}
