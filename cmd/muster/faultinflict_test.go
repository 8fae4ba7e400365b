package main

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider/local/fault"
)

// What the tests do to a machine, from outside, where no agent can prevent it.

func (s *faultSite) breaks(machine string, how func(*fault.Site, muster.MachineID) error) {
	s.t.Helper()
	site, err := fault.Open(s.instance)
	if err == nil {
		err = how(site, muster.MachineID(machine))
	}
	if err != nil {
		s.t.Fatalf("break %s: %v", machine, err)
	}
}

func (s *faultSite) kill(machine string) { s.breaks(machine, (*fault.Site).KillInit) }

func (s *faultSite) freeze(machine string) { s.breaks(machine, (*fault.Site).Freeze) }

func (s *faultSite) signal(machine, name string, sig unix.Signal) {
	s.breaks(machine, func(site *fault.Site, id muster.MachineID) error { return site.Signal(id, name, sig) })
}

// cut pulls both cables of a machine and, after some time, puts them back. The
// function that it returns waits for that.
func (s *faultSite) cut(machine string, d time.Duration) func() {
	s.breaks(machine, func(site *fault.Site, id muster.MachineID) error { return site.Cut(id) })
	done := make(chan error, 1)
	go func() {
		time.Sleep(d)
		site, err := fault.Open(s.instance)
		if err == nil {
			err = site.Mend(muster.MachineID(machine))
		}
		done <- err
	}()
	return func() {
		if err := <-done; err != nil {
			s.t.Errorf("put the cables of %s back: %v", machine, err)
		}
	}
}
