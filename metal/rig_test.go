package metal_test

import (
	"archive/tar"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal"
	"github.com/muster-hpc/muster/metal/bootapi"
	"github.com/muster-hpc/muster/metal/bootqueue"
	"github.com/muster-hpc/muster/metal/kernels"
	"github.com/muster-hpc/muster/metal/netboot"
	"github.com/muster-hpc/muster/metal/netboot/dhcp"
	"github.com/muster-hpc/muster/metal/power"
	"github.com/muster-hpc/muster/wire"
)

// racked is a rack whose machines pretend: each asks for its boot, speaks with the boot server
// as the first program does, and does what it is told. Everything between is real.
type racked struct {
	t       *testing.T
	dir     string
	regs    []muster.Registration
	control *power.Control

	mu       sync.Mutex
	machines map[muster.MachineID]*bare
	dir2     netboot.Directory // of the provider that is open
	desk     *bootapi.Server
	told     map[muster.MachineID]int
	orders   map[muster.MachineID][]*wire.BootTask
}

// bare is one machine; its rack's lock guards it.
type bare struct {
	r     *racked
	reg   muster.Registration
	on    bool
	stuck bool          // its controller takes no order to go off
	dead  bool          // its controller takes the order to go on, and nothing happens
	lock  bool          // its controller lets nobody in
	bad   bool          // its test finds something
	mute  bool          // it never speaks
	slow  chan struct{} // its controller says that it was told to go off, and waits for a word
	stop  context.CancelFunc
	over  sync.WaitGroup
	node  int64 // the attempt whose image it runs
	last  error // why it got no order last
}

const testImage = muster.ImageID("sha256:" + "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff")

func newRacked(t *testing.T, n int) *racked {
	t.Helper()
	r := &racked{
		t: t, dir: t.TempDir(), regs: registered(n), machines: map[muster.MachineID]*bare{}, told: map[muster.MachineID]int{},
		orders: map[muster.MachineID][]*wire.BootTask{},
	}
	for i := range r.regs {
		g := &r.regs[i]
		g.Power = muster.PowerAddress{Kind: muster.PowerScript, Address: "/pretended"}
		g.Facts = &muster.Facts{
			Architecture: "amd64", Processor: "AMD EPYC 7543 32-Core Processor", Cores: 8, Memory: 16 << 30,
			Disks: []muster.Disk{{Name: "nvme0n1", Kind: "nvme", Serial: "D" + string(g.ID), Size: 1 << 30}},
		}
		r.machines[g.ID] = &bare{r: r, reg: *g}
	}
	r.control = power.NewControl(power.Config{
		Drivers: power.Drivers{muster.PowerScript: power.Maker{New: func(t power.Target, _ power.Deps) (power.Driver, error) {
			return r.machines[t.Machine], nil
		}}},
		Times: power.Times{Poll: time.Millisecond, Rise: time.Second, Fall: time.Second, Pause: time.Millisecond, PauseMost: time.Millisecond, Listen: time.Millisecond},
	})
	image(t, r.dir)
	t.Cleanup(func() {
		for _, m := range r.machines {
			_ = m.Off(context.Background())
			m.over.Wait()
		}
		_ = r.control.Close()
	})
	return r
}

// image makes files that could be an image's.
func image(t *testing.T, dir string) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "modules.tar"))
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(f)
	for name, text := range map[string]string{
		"usr/lib/modules/6.1.0/modules.dep": "", "usr/lib/modules/6.1.0/modules.alias": "", "usr/lib/modules/6.1.0/modules.builtin": "",
	} {
		_ = w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))})
		_, _ = w.Write([]byte(text))
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	root := make([]byte, 9<<20+17)
	_, _ = rand.Read(root)
	for name, b := range map[string][]byte{"root.squashfs": root, "vmlinuz": []byte("kernel"), "agent": []byte("\x7fELF agent")} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// Boot and Discovery are of metal.Images.
func (r *racked) Boot(_ context.Context, id muster.ImageID) (*muster.Image, string, error) {
	if id != testImage {
		return nil, "", muster.Errorf(muster.ENotFound, "no image %s", id)
	}
	return &muster.Image{ID: id, Name: "test", Kernel: "6.1.0", Files: []muster.ImageFile{
		{Role: muster.FileRoot, Name: "root.squashfs", Size: 9<<20 + 17}, {Role: muster.FileKernel, Name: "vmlinuz", Size: 6},
		{Role: muster.FileModules, Name: "modules.tar"},
	}}, r.dir, nil
}

func (r *racked) Discovery(context.Context) (muster.ImageID, error) { return testImage, nil }

func (r *racked) Bootable(context.Context) ([]muster.ImageID, error) {
	return []muster.ImageID{testImage}, nil
}

// Registrations and Password are of metal.Registry.
func (r *racked) Registrations(context.Context) ([]muster.Registration, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]muster.Registration(nil), r.regs...), nil
}

func (r *racked) Password(context.Context, muster.MachineID) ([]byte, error) { return nil, nil }
func (r *racked) PowerKey(context.Context, muster.MachineID) ([]byte, error) { return nil, nil }

// open opens a provider, as a server that starts does.
func (r *racked) open(t *testing.T, change func(*metal.Options)) *metal.Provider {
	t.Helper()
	made, err := kernels.Open(filepath.Join(r.dir, "kernels"), filepath.Join(r.dir, "agent"), r)
	if err != nil {
		t.Fatal(err)
	}
	o := metal.Options{
		Dir: filepath.Join(r.dir, "state"), Registry: r, Power: r.control, Images: r, Kernels: made,
		Interface: "lo", Address: netip.MustParsePrefix("10.0.0.1/16"), URL: "https://10.0.0.1:7701", CA: strings.Repeat("ab", 32),
		Leased: address, Limits: func(string) bootqueue.Limits { return quick() },
		OnFacts: func(id muster.MachineID, f muster.Facts, _ muster.Trust) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.told[id]++
			for i := range r.regs {
				if r.regs[i].ID == id {
					r.regs[i].Facts, r.regs[i].Seen = &f, time.Now()
				}
			}
		},
	}
	if change != nil {
		change(&o)
	}
	p, err := metal.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	desk, err := bootapi.New(bootapi.Config{Registry: p.BootRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	r.mu.Lock()
	r.dir2, r.desk = p.Directory(), desk
	r.mu.Unlock()
	return p
}

// A machine is its own driver.

func (m *bare) Abilities() power.Abilities {
	return power.Abilities{NetworkBoot: true, Off: true, State: true, ProvesOff: true}
}

func (m *bare) On(context.Context) error {
	m.r.mu.Lock()
	defer m.r.mu.Unlock()
	if m.lock {
		return errLocked()
	}
	if !m.on && !m.dead {
		m.start()
	}
	return nil
}

func errLocked() error { return muster.Errorf(muster.EUnauth, "the password is wrong") }

// start has the machine run; the lock is held.
func (m *bare) start() {
	ctx, cancel := context.WithCancel(context.Background())
	m.on, m.stop, m.node = true, cancel, 0
	m.over.Go(func() { m.run(ctx) })
}

func (m *bare) Off(context.Context) error {
	m.r.mu.Lock()
	slow := m.slow
	m.r.mu.Unlock()
	if slow != nil {
		slow <- struct{}{}
		<-slow
	}
	m.r.mu.Lock()
	defer m.r.mu.Unlock()
	if m.on && !m.stuck {
		m.on, m.node = false, 0
		m.stop()
	}
	return nil
}

// reset starts the machine again, as its user may.
func (m *bare) reset() {
	m.r.mu.Lock()
	defer m.r.mu.Unlock()
	m.stop()
	m.start()
}

func (m *bare) State(context.Context) (power.Reading, error) {
	m.r.mu.Lock()
	defer m.r.mu.Unlock()
	if m.lock {
		return power.Reading{}, errLocked()
	}
	s := power.Off
	if m.on {
		s = power.On
	}
	return power.Reading{State: s, Proof: power.ProofController, Text: "the controller says " + string(s)}, nil
}

func (m *bare) Close(context.Context) error { return nil }

// run is what the machine does from its firmware on.
func (m *bare) run(ctx context.Context) {
	mac, _ := dhcp.ParseMAC(m.reg.NICs[0].MAC)
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	var done *wire.BootTaskResult
	var stay time.Duration
	number := ""
	for ctx.Err() == nil {
		m.r.mu.Lock()
		dir, desk, mute := m.r.dir2, m.r.desk, m.mute
		m.r.mu.Unlock()
		if number == "" && !mute {
			number = dir.Decide(&netboot.Request{MAC: mac}).Boot
		}
		if number == "" || mute {
			if !sleep(ctx, time.Millisecond) {
				return
			}
			continue
		}
		from, _ := address(m.reg.NICs[0].MAC)
		h := &wire.BootCheckIn{Protocol: 1, Boot: number, Key: key, MAC: m.reg.NICs[0].MAC, Address: from, Facts: m.reg.Facts, Done: done}
		b, _ := json.Marshal(h)
		h, err := wire.DecodeBootCheckIn(b)
		if err != nil {
			m.r.t.Errorf("its hello: %v", err)
			return
		}
		reply, err := desk.CheckIn(ctx, h, from)
		m.r.mu.Lock()
		m.last = err
		m.r.mu.Unlock()
		if err != nil || reply.Task == nil {
			if !sleep(ctx, time.Millisecond) {
				return
			}
			continue
		}
		m.r.mu.Lock()
		m.r.orders[m.reg.ID] = append(m.r.orders[m.reg.ID], reply.Task)
		bad := m.bad
		m.r.mu.Unlock()
		switch o := reply.Task; o.Kind {
		case wire.BootImage:
			m.r.mu.Lock()
			m.node = o.Attempt
			m.r.mu.Unlock()
			<-ctx.Done()
			return
		case wire.BootOff:
			if !sleep(ctx, stay) {
				return
			}
			m.r.mu.Lock()
			if ctx.Err() == nil {
				m.on = false
				m.stop()
			}
			m.r.mu.Unlock()
			return
		default:
			stay = min(time.Duration(o.Stay), 2*time.Second) // it is in a hurry
			done = &wire.BootTaskResult{Kind: o.Kind, Passed: !bad, Steps: []muster.CleanStep{{What: "all of it", Check: fmt.Sprint(o.Kind), OK: !bad}}}
		}
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// runs waits until a machine runs an image, and returns the attempt.
func (r *racked) runs(t *testing.T, id muster.MachineID) int64 {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		r.mu.Lock()
		node := r.machines[id].node
		r.mu.Unlock()
		if node > 0 {
			return node
		}
	}
	t.Fatalf("%s runs no image", id)
	return 0
}
