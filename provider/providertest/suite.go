package providertest

import (
	"context"
	"net"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider"
)

// Subject is a driver under test, with hardware of its own for the time of the
// suite.
type Subject struct {
	// Open gives a hold on the hardware, as a server that starts does. The
	// suite closes it and opens another, as after a crash.
	Open func(t *testing.T) provider.Provider
	// Image to boot.
	Image muster.ImageID
	// Boot changes a boot before it is used: seeds, shares, cores. May be nil.
	Boot func(b *provider.Boot)
	// SSH means that a booted machine answers on port 22 with an SSH banner.
	SSH bool
	// Die powers a machine off by itself, as a crash inside it does. Nil: the
	// driver cannot.
	Die func(t *testing.T, p provider.Provider, id muster.MachineID)
	// Freeze stops every process of a machine, as one that hangs.
	// Nil: the driver cannot.
	Freeze func(t *testing.T, p provider.Provider, id muster.MachineID)
	// Spoil makes the machine's next test find something, until undo. Nil: the
	// driver's machines cannot be spoilt.
	Spoil func(t *testing.T, p provider.Provider, id muster.MachineID) (undo func())
	// NoShell means that the driver opens no shell inside machines, and says so.
	NoShell bool
	// Share means that machines mount shares: the path of a file that the
	// machine makes in the share that it finds at ShareTarget. "": it does not.
	Share string
	// Patience is how long anything may take. 0: 20 s.
	Patience time.Duration
}

// suite is one run over a Subject.
type suite struct {
	Subject
	p       provider.Provider
	ids     []muster.MachineID
	attempt int64
}

// Network that the suite makes.
const networkIndex = 3900

// Suite checks every promise of the contract. It needs at least two machines
// that are off, and leaves them off and clean.
func Suite(t *testing.T, subject Subject) {
	t.Helper()
	if subject.Patience == 0 {
		subject.Patience = 20 * time.Second
	}
	s := &suite{Subject: subject}
	s.p = s.Open(t)
	t.Cleanup(func() { _ = s.p.Close() })
	t.Cleanup(func() { s.endAll() })
	for _, c := range []struct {
		name string
		test func(*testing.T)
	}{
		{"discover", s.discover},
		{"networks", s.networks},
		{"boot and off", s.bootAndOff},
		{"the same attempt is left alone", s.sameAttempt},
		{"another attempt starts anew", s.otherAttempt},
		{"batch", s.batch},
		{"changes", s.changes},
		{"reopen", s.reopen},
		{"dial", s.dial},
		{"fence", s.fence},
		{"fence of a machine that stands still", s.fenceFrozen},
		{"fence of a machine that boots", s.fenceBooting},
		{"freeze and thaw", s.freezes},
		{"test", s.test},
		{"console", s.console},
		{"shell", s.shell},
		{"shares", s.shares},
		{"clean", s.clean},
		{"what cannot be", s.refusals},
		{"dies by itself", s.dies},
	} {
		if !t.Run(c.name, c.test) && len(s.ids) < 2 {
			t.FailNow()
		}
		s.endAll()
	}
}

// endAll leaves every machine off and no network behind.
func (s *suite) endAll() {
	ctx, cancel := context.WithTimeout(context.Background(), s.Patience)
	defer cancel()
	for _, id := range s.ids {
		_, _ = s.p.Fence(ctx, id)
	}
	_ = s.p.RemoveNetworks(ctx, []muster.ClusterID{s.network().Cluster})
}

func (s *suite) network() provider.Network {
	return provider.Network{Cluster: "c-suite", Index: networkIndex, Subnet: netip.MustParsePrefix("10.243.192.0/20"), Egress: muster.EgressNone}
}

func (s *suite) context(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), s.Patience)
	t.Cleanup(cancel)
	return ctx
}

// want is a boot of machine i for a new attempt.
func (s *suite) want(i int) provider.DesiredState {
	s.attempt++
	n := s.network()
	addr := n.Subnet.Addr()
	for range 10 + i {
		addr = addr.Next()
	}
	b := &provider.Boot{
		Attempt: s.attempt, Cluster: n.Cluster, Hostname: "n0" + string(rune('1'+i)), Image: s.Image,
		Message: &provider.Attachment{Network: n, Address: netip.PrefixFrom(addr, n.Subnet.Bits())},
	}
	b.Bootstrap.Machine, b.Bootstrap.Attempt = s.ids[i], s.attempt
	if s.Boot != nil {
		s.Boot(b)
	}
	return provider.DesiredState{Machine: s.ids[i], Power: provider.PowerBoot, Boot: b}
}

func (s *suite) ensure(t *testing.T, wants ...provider.DesiredState) {
	t.Helper()
	for i, err := range s.p.Ensure(s.context(t), wants) {
		if err != nil {
			t.Fatalf("ensure %s of %s: %v", wants[i].Power, wants[i].Machine, err)
		}
	}
}

func (s *suite) ensureNetwork(t *testing.T) {
	t.Helper()
	if err := s.p.EnsureNetworks(s.context(t), []provider.Network{s.network()}); err != nil {
		t.Fatalf("ensure networks: %v", err)
	}
}

// boot starts machine i and waits until it runs.
func (s *suite) boot(t *testing.T, i int) provider.DesiredState {
	t.Helper()
	s.ensureNetwork(t)
	w := s.want(i)
	s.ensure(t, w)
	s.await(t, w.Machine, provider.StateRunning, w.Boot.Attempt)
	return w
}

func (s *suite) off(t *testing.T, id muster.MachineID) {
	t.Helper()
	s.ensure(t, provider.DesiredState{Machine: id, Power: provider.PowerOff})
	s.await(t, id, provider.StateOff, 0)
}

func (s *suite) look(t *testing.T, id muster.MachineID) provider.Observation {
	t.Helper()
	seen, err := s.p.Observe(s.context(t), []muster.MachineID{id})
	if err != nil || len(seen) != 1 || seen[0].Machine != id {
		t.Fatalf("observe %s: %+v, %v", id, seen, err)
	}
	return seen[0]
}

// await waits until the machine is in the state; attempt counts when it runs.
func (s *suite) await(t *testing.T, id muster.MachineID, state provider.State, attempt int64) provider.Observation {
	t.Helper()
	var seen provider.Observation
	for end := time.Now().Add(s.Patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		seen = s.look(t, id)
		if seen.State == state && (state != provider.StateRunning || seen.Attempt == attempt) {
			return seen
		}
	}
	t.Fatalf("machine %s is %s, attempt %d (%v), not %s, attempt %d", id, seen.State, seen.Attempt, seen.Err, state, attempt)
	return seen
}

func (s *suite) discover(t *testing.T) {
	machines, err := s.p.Discover(s.context(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range machines {
		if m.ID == "" || m.Provider != s.p.Name() || slices.Contains(s.ids, m.ID) {
			t.Errorf("machine %q of provider %q", m.ID, m.Provider)
		}
		if f := m.Facts; f.Architecture == "" || f.Cores < 1 || f.Memory < 1 || f.Class == "" {
			t.Errorf("machine %s has facts %+v", m.ID, f)
		}
		s.ids = append(s.ids, m.ID)
	}
	if len(s.ids) < 2 {
		t.Fatalf("%d machines: the suite needs two", len(s.ids))
	}
	can := s.p.Capabilities()
	if can.Fabric == "" || can.Trust == "" || can.BootsAtOnce < 0 || !reflect.DeepEqual(can, s.p.Capabilities()) {
		t.Errorf("capabilities %+v", can)
	}
	if v := can.VM; v != nil && (!v.OwnKernel || v.VM != nil || v.SharesHost != can.SharesHost || v.Trust == "" || !v.CanMount(muster.DriverManagedNFS)) {
		t.Errorf("capabilities of virtual machines %+v", v)
	}
	if can.SharesHost && can.OwnKernel || !can.CanUse(muster.EgressNone) || !can.CanMount(muster.DriverManagedNFS) {
		t.Errorf("capabilities that contradict each other, or every cluster's needs: %+v", can)
	}
	again, err := s.p.Discover(s.context(t))
	if err != nil || len(again) != len(machines) {
		t.Errorf("again %d machines, %v", len(again), err)
	}
	all, err := s.p.Observe(s.context(t), nil)
	if err != nil || len(all) != len(machines) {
		t.Errorf("observe of all gives %d machines, %v", len(all), err)
	}
	for _, o := range all {
		if o.State != provider.StateOff {
			t.Errorf("machine %s is %s before the suite", o.Machine, o.State)
		}
	}
}

func (s *suite) networks(t *testing.T) {
	has := func() bool {
		list, err := s.p.Networks(s.context(t))
		if err != nil {
			t.Fatal(err)
		}
		return slices.Contains(list, s.network().Cluster)
	}
	for range 2 { // both ways twice: idempotent
		s.ensureNetwork(t)
		if !has() {
			t.Error("the network is not there")
		}
	}
	for range 2 {
		if err := s.p.RemoveNetworks(s.context(t), []muster.ClusterID{s.network().Cluster}); err != nil {
			t.Fatal(err)
		}
		if has() {
			t.Error("the network is still there")
		}
	}
}

func (s *suite) bootAndOff(t *testing.T) {
	w := s.boot(t, 0)
	if seen := s.look(t, w.Machine); seen.Since.IsZero() || seen.Err != nil {
		t.Errorf("running: %+v", seen)
	}
	if other := s.look(t, s.ids[1]); other.State != provider.StateOff {
		t.Errorf("the other machine is %s", other.State)
	}
	s.off(t, w.Machine)
	s.off(t, w.Machine) // off is off
	w = s.boot(t, 0)    // and it can be started again
	s.off(t, w.Machine)
}

func (s *suite) sameAttempt(t *testing.T) {
	w := s.boot(t, 0)
	since := s.look(t, w.Machine).Since
	for range 3 {
		s.ensure(t, w)
	}
	if seen := s.look(t, w.Machine); seen.State != provider.StateRunning || seen.Attempt != w.Boot.Attempt || !seen.Since.Equal(since) {
		t.Errorf("it was disturbed: %+v, running since %s", seen, since)
	}
}

func (s *suite) otherAttempt(t *testing.T) {
	w := s.boot(t, 0)
	next := s.want(0)
	s.ensure(t, next)
	s.await(t, w.Machine, provider.StateRunning, next.Boot.Attempt)
}

func (s *suite) batch(t *testing.T) {
	s.ensureNetwork(t)
	a, b := s.want(0), s.want(1)
	s.ensure(t, a, b)
	s.await(t, a.Machine, provider.StateRunning, a.Boot.Attempt)
	s.await(t, b.Machine, provider.StateRunning, b.Boot.Attempt)
	c := s.want(1)
	s.ensure(t, provider.DesiredState{Machine: a.Machine, Power: provider.PowerOff}, c)
	s.await(t, a.Machine, provider.StateOff, 0)
	s.await(t, c.Machine, provider.StateRunning, c.Boot.Attempt)
}

// changes only hint, but a machine that goes off must not be waited for.
func (s *suite) changes(t *testing.T) {
	w := s.boot(t, 0)
	for len(s.p.Changes()) > 0 {
		<-s.p.Changes()
	}
	s.ensure(t, provider.DesiredState{Machine: w.Machine, Power: provider.PowerOff})
	s.awaitChange(t, w.Machine)
	s.await(t, w.Machine, provider.StateOff, 0)
}

func (s *suite) awaitChange(t *testing.T, id muster.MachineID) {
	t.Helper()
	end := time.After(s.Patience)
	for {
		select {
		case got := <-s.p.Changes():
			if got == id {
				return
			}
		case <-end:
			t.Fatalf("nobody said that machine %s changed", id)
		}
	}
}

// reopen is a crash of the server: the machine goes on, and is found again.
func (s *suite) reopen(t *testing.T) {
	w := s.boot(t, 0)
	since := s.look(t, w.Machine).Since
	if err := s.p.Close(); err != nil {
		t.Fatal(err)
	}
	s.p = s.Open(t)
	seen := s.await(t, w.Machine, provider.StateRunning, w.Boot.Attempt)
	if d := seen.Since.Sub(since).Abs(); d > time.Second {
		t.Errorf("it runs since %s, not %s", seen.Since, since)
	}
	if list, err := s.p.Networks(s.context(t)); err != nil || !slices.Contains(list, s.network().Cluster) {
		t.Errorf("networks %v, %v", list, err)
	}
	s.ensure(t, w) // still the same attempt
	if again := s.look(t, w.Machine); !again.Since.Equal(seen.Since) {
		t.Error("it was disturbed")
	}
	s.off(t, w.Machine)
}

func (s *suite) dial(t *testing.T) {
	if !s.SSH {
		t.Skip("nothing answers on port 22 here")
	}
	w := s.boot(t, 0)
	var err error
	for end := time.Now().Add(s.Patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		var c net.Conn
		if c, err = s.p.Dial(s.context(t), w.Machine, 22); err != nil {
			continue // sshd comes a little after init
		}
		_ = c.SetReadDeadline(time.Now().Add(s.Patience))
		buf := make([]byte, 8)
		n, rerr := c.Read(buf)
		_ = c.Close()
		if rerr != nil || !strings.HasPrefix(string(buf[:n]), "SSH-2.0") {
			t.Fatalf("port 22 says %q, %v", buf[:n], rerr)
		}
		s.off(t, w.Machine)
		if _, err := s.p.Dial(s.context(t), w.Machine, 22); err == nil {
			t.Error("a machine that is off answers")
		}
		return
	}
	t.Fatalf("port 22: %v", err)
}

func (s *suite) fence(t *testing.T) {
	w := s.boot(t, 0)
	for range 2 {
		s.fenced(t, w.Machine)
		// Proven means now, not soon.
		if seen := s.look(t, w.Machine); seen.State != provider.StateOff {
			t.Errorf("fenced, and %s", seen.State)
		}
	}
}

func (s *suite) clean(t *testing.T) {
	w := s.boot(t, 0)
	if _, err := s.p.Clean(s.context(t), w.Machine); err == nil {
		t.Error("a running machine was cleaned")
	}
	if seen := s.look(t, w.Machine); seen.State != provider.StateRunning {
		t.Errorf("cleaning it in vain made it %s", seen.State)
	}
	s.off(t, w.Machine)
	for range 2 {
		r, err := s.p.Clean(s.context(t), w.Machine)
		if err != nil {
			t.Fatal(err)
		}
		if r.Machine != w.Machine || !r.Verified || len(r.Steps) == 0 || r.At.IsZero() {
			t.Errorf("record %+v", r)
		}
		for _, step := range r.Steps {
			if !step.OK || step.What == "" || step.Check == "" {
				t.Errorf("step %+v", step)
			}
		}
	}
}

func (s *suite) refusals(t *testing.T) {
	s.ensureNetwork(t)
	good := s.want(0)
	bad := provider.DesiredState{Machine: "no-such-machine", Power: provider.PowerBoot, Boot: good.Boot}
	errs := s.p.Ensure(s.context(t), []provider.DesiredState{bad, good})
	if len(errs) != 2 || errs[0] == nil || errs[1] != nil {
		t.Fatalf("one error for each machine: %v", errs)
	}
	s.await(t, good.Machine, provider.StateRunning, good.Boot.Attempt)
	nothing := provider.DesiredState{Machine: s.ids[1], Power: provider.PowerBoot}
	if errs := s.p.Ensure(s.context(t), []provider.DesiredState{nothing}); len(errs) != 1 || errs[0] == nil {
		t.Errorf("a boot of nothing: %v", errs)
	}
	if _, err := s.p.Clean(s.context(t), "no-such-machine"); err == nil {
		t.Error("a machine that does not exist was cleaned")
	}
}

func (s *suite) dies(t *testing.T) {
	if s.Die == nil {
		t.Skip("this driver's machines cannot be made to die")
	}
	w := s.boot(t, 0)
	for len(s.p.Changes()) > 0 {
		<-s.p.Changes()
	}
	s.Die(t, s.p, w.Machine)
	s.awaitChange(t, w.Machine)
	s.await(t, w.Machine, provider.StateOff, 0)
}
