package daemon

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/agent/boot"
	"github.com/muster-hpc/muster/control"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/metal"
	"github.com/muster-hpc/muster/metal/bootapi"
	"github.com/muster-hpc/muster/metal/bootqueue"
	"github.com/muster-hpc/muster/metal/kernels"
	"github.com/muster-hpc/muster/metal/power"
	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// bootRig is a server's boot server and files for machines that boot, over TLS on this host, with
// the real store, use cases and provider. The machines' hardware is pretended; what they
// say goes over the wire as their first program says it.
type bootRig struct {
	t     *testing.T
	srv   *Server
	m     *metalParts
	url   string
	image []byte // the root file system
	dir   string

	power *power.Control

	mu    sync.Mutex
	on    map[muster.MachineID]bool
	alive time.Time // when the machines' agents were heard last
	serve http.Handler
}

const rigImage = muster.ImageID("sha256:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff")

// rigMAC is the card that machine m-1, m-2 and so on boots from.
func rigMAC(id muster.MachineID) string { return "52:54:00:aa:00:0" + string(id[2:]) }

func newBootRig(t *testing.T) *bootRig {
	t.Helper()
	r := &bootRig{t: t, dir: t.TempDir(), on: map[muster.MachineID]bool{}, image: make([]byte, 5<<20+11)}
	_, _ = rand.Read(r.image)
	log := slog.New(slog.DiscardHandler)
	s := &Server{cfg: Config{Clock: muster.SystemClock{}}, log: log, succession: newSuccession()}
	var err error
	if s.state, err = openState(r.t.Context(), filepath.Join(r.dir, "state")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.state.close() })
	if s.db, err = store.Open(t.Context(), s.state.path("muster.db"), store.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.db.Close() })
	if s.authority, err = pki.OpenAuthority(s.state.path("keys"), s.cfg.Clock); err != nil {
		t.Fatal(err)
	}
	s.control = control.New(control.Config{Store: s.db, Images: controltest.NewImages(), Log: log})
	r.srv = s
	r.register("m-1", "m-2", "m-3")
	r.files()

	controller := power.NewControl(power.Config{
		Drivers: power.Drivers{muster.PowerScript: power.Maker{New: func(t power.Target, _ power.Deps) (power.Driver, error) {
			return rigPower{r, t.Machine}, nil
		}}},
		Times: power.Times{Poll: time.Millisecond, Listen: time.Millisecond},
	})
	t.Cleanup(func() { _ = controller.Close() })
	r.power = controller
	r.m = &metalParts{address: netip.MustParseAddr("127.0.0.1"), words: make(chan func(context.Context), 64)}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.url = "https://" + ln.Addr().String()
	r.open()
	hs := s.bootServer(r.m)
	hs.Handler = http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { // of the provider that is open
		r.mu.Lock()
		h := r.serve
		r.mu.Unlock()
		h.ServeHTTP(w, q)
	})
	served := make(chan struct{})
	go func() { defer close(served); _ = serveBoots(hs, ln) }()
	ctx, cancel := context.WithCancel(context.Background())
	heard := make(chan struct{})
	go func() { defer close(heard); r.m.hear(ctx) }()
	t.Cleanup(func() {
		_ = hs.Close()
		<-served
		cancel()
		<-heard
		_ = r.m.provider.Close()
	})
	return r
}

// open opens the provider, as a server that starts does.
func (r *bootRig) open() {
	r.t.Helper()
	s := r.srv
	made, err := kernels.Open(s.state.path("kernels"), filepath.Join(r.dir, "agent"), r)
	if err != nil {
		r.t.Fatal(err)
	}
	p, err := metal.New(r.t.Context(), metal.Options{
		Dir: s.state.path("metal"), Registry: registry{s.db}, Power: r.power, Images: r, Kernels: made,
		Interface: "lo", Address: netip.MustParsePrefix("127.0.0.1/8"), URL: r.url, CA: s.authority.Fingerprint(),
		Leased: func(mac string) (netip.Addr, bool) {
			if mac == rigMAC("m-3") { // it asks from elsewhere than it was lent
				return netip.MustParseAddr("127.0.0.9"), true
			}
			return netip.MustParseAddr("127.0.0.1"), true
		},
		Limits: func(string) bootqueue.Limits {
			return bootqueue.Limits{Rate: 1000, Burst: 100, Window: 100, Typical: time.Second, Patience: time.Minute}
		},
		Alive: func(muster.MachineID) time.Time {
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.alive
		},
		OnFacts: func(id muster.MachineID, f muster.Facts, trust muster.Trust) { s.told(r.m, id, f, trust) },
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.m.provider = p
	if r.m.desk, err = bootapi.New(bootapi.Config{Registry: p.BootRegistry()}); err != nil {
		r.t.Fatal(err)
	}
	h := s.bootServer(r.m).Handler
	r.mu.Lock()
	r.serve = h
	r.mu.Unlock()
}

// register puts approved machines into the store.
func (r *bootRig) register(ids ...muster.MachineID) {
	r.t.Helper()
	if err := r.srv.db.Update(r.t.Context(), muster.System(), func(tx *store.Tx) error {
		for _, id := range ids {
			if err := tx.PutRegistration(muster.Registration{
				ID: id, State: muster.RegistrationApproved, Rack: "r1", Power: muster.PowerAddress{Kind: muster.PowerScript, Address: "/pretended"},
				NICs: []muster.RegisteredNIC{{MAC: rigMAC(id), Use: muster.UseManagement}},
			}, "registered"); err != nil {
				return err
			}
			for _, p := range []muster.MachinePhase{muster.MachineNew, muster.MachineCleaning, muster.MachineFree} {
				if err := tx.PutMachine(muster.Machine{ID: id, Provider: metal.Name, Phase: p, LastSeen: time.Now()}, ""); err != nil {
					return err
				}
			}
		}
		return nil
	}); err != nil {
		r.t.Fatal(err)
	}
}

// files makes what could be an image's, and an agent.
func (r *bootRig) files() {
	r.t.Helper()
	var modules bytes.Buffer
	w := tar.NewWriter(&modules)
	for _, name := range []string{"modules.dep", "modules.alias", "modules.builtin"} {
		_ = w.WriteHeader(&tar.Header{Name: "usr/lib/modules/6.1.0/" + name, Mode: 0o644})
	}
	_ = w.Close()
	for name, b := range map[string][]byte{
		"root.squashfs": r.image, "vmlinuz": []byte("kernel"), "agent": []byte("\x7fELF agent"), "modules.tar": modules.Bytes(),
	} {
		if err := os.WriteFile(filepath.Join(r.dir, name), b, 0o644); err != nil {
			r.t.Fatal(err)
		}
	}
}

// Boot and Discovery are of metal.Images.
func (r *bootRig) Boot(_ context.Context, id muster.ImageID) (*muster.Image, string, error) {
	return &muster.Image{ID: id, Name: "test", Kernel: "6.1.0", Files: []muster.ImageFile{
		{Role: muster.FileRoot, Name: "root.squashfs", Size: int64(len(r.image))}, {Role: muster.FileKernel, Name: "vmlinuz", Size: 6},
		{Role: muster.FileModules, Name: "modules.tar"},
	}}, r.dir, nil
}

func (r *bootRig) Discovery(context.Context) (muster.ImageID, error) { return rigImage, nil }

func (r *bootRig) Bootable(context.Context) ([]muster.ImageID, error) {
	return []muster.ImageID{rigImage}, nil
}

// rigPower switches a pretended machine.
type rigPower struct {
	r  *bootRig
	id muster.MachineID
}

func (rigPower) Abilities() power.Abilities {
	return power.Abilities{NetworkBoot: true, Off: true, State: true, ProvesOff: true}
}

func (p rigPower) set(on bool) error {
	p.r.mu.Lock()
	defer p.r.mu.Unlock()
	p.r.on[p.id] = on
	return nil
}

func (p rigPower) On(context.Context) error  { return p.set(true) }
func (p rigPower) Off(context.Context) error { return p.set(false) }

func (p rigPower) State(context.Context) (power.Reading, error) {
	p.r.mu.Lock()
	defer p.r.mu.Unlock()
	s := power.Off
	if p.r.on[p.id] {
		s = power.On
	}
	return power.Reading{State: s, Proof: power.ProofController, Text: string(s)}, nil
}

func (rigPower) Close(context.Context) error { return nil }

// boot orders a machine to run the image, and returns the number of its boot once it is
// switched on.
func (r *bootRig) boot(id muster.MachineID, attempt int64) string {
	r.t.Helper()
	b := &provider.Boot{Attempt: attempt, Cluster: "c-1", Hostname: "n01", Image: rigImage}
	b.Bootstrap.Token = rigToken
	r.ensure(provider.DesiredState{Machine: id, Power: provider.PowerBoot, Boot: b})
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		for _, st := range r.m.provider.Boots().States(id) {
			if st.Attempt == attempt && st.Step == metal.StepBooting {
				return st.Number
			}
		}
	}
	r.t.Fatalf("%s does not boot: %+v", id, r.m.provider.Boots().States(id))
	return ""
}

const (
	rigToken = "the-one-time-token"
	patience = 20 * time.Second
)

func (r *bootRig) ensure(w provider.DesiredState) {
	r.t.Helper()
	if errs := r.m.provider.Ensure(r.t.Context(), []provider.DesiredState{w}); errs != nil {
		r.t.Fatal(errs)
	}
}

// program is a machine's first program, with a key of its own.
func (r *bootRig) program(number string) *boot.Server {
	r.t.Helper()
	settings := boot.Settings{Server: r.url, Boot: number}
	if n, err := hex.Decode(settings.Authority[:], []byte(r.srv.authority.Fingerprint())); err != nil || n != 32 {
		r.t.Fatal(n, err)
	}
	p, err := boot.NewServer(settings, "test", time.Now)
	if err != nil {
		r.t.Fatal(err)
	}
	return p
}

// hello is what a machine's first program says.
func hello(id muster.MachineID, facts *muster.Facts) wire.BootCheckIn {
	return wire.BootCheckIn{MAC: rigMAC(id), MACs: []string{rigMAC(id)}, Address: netip.MustParseAddr("127.0.0.1"), Facts: facts}
}

// order says hello and returns the order.
func (r *bootRig) order(p *boot.Server, id muster.MachineID, facts *muster.Facts) *wire.BootTask {
	r.t.Helper()
	reply, err := p.CheckIn(r.t.Context(), hello(id, facts))
	if err != nil || reply.Task == nil {
		r.t.Fatalf("%s: %+v, %v", id, reply, err)
	}
	return reply.Task
}
