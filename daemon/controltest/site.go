// Package controltest makes a whole site for tests: a real store, the real use
// cases and the real API on a socket, with machines and images that are only
// records, and a stand-in for the loop that builds clusters.
package controltest

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/api"
	"github.com/muster-hpc/muster/api/client"
	"github.com/muster-hpc/muster/control"
	"github.com/muster-hpc/muster/internal/lastcontact"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// Site is a running site.
type Site struct {
	T       testing.TB
	Dir     string
	Socket  string
	Store   *store.DB
	Control *control.Service
	API     *api.API
	Images  *Images
	Agents  *Agents
	Dialer  *Dialer

	mu       sync.Mutex
	stop     func()
	building bool
	options  Options
}

// Options change a site.
type Options struct {
	Machines int // free ones, of four cores
	// Build lets clusters become ready and go away by themselves.
	Build   bool
	Control func(*control.Config)
	API     func(*api.Config)
}

// Start makes a site that ends with the test.
func Start(t testing.TB, o Options) *Site {
	t.Helper()
	s := &Site{T: t, Dir: t.TempDir(), Images: NewImages(), Agents: &Agents{}, Dialer: &Dialer{}, building: o.Build, options: o}
	s.Socket = filepath.Join(s.Dir, "muster.sock")
	db, err := store.Open(t.Context(), filepath.Join(s.Dir, "muster.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.Store = db
	t.Cleanup(func() { _ = db.Close() })
	config := control.Config{Store: db, Images: s.Images, Agents: s.Agents, Dialer: s.Dialer, Version: "test", Instance: "abc", Registrar: "metal", Providers: site(), Contacts: &lastcontact.Contacts{}}
	config.Contacts.AddAnswered(s.Agents.Seen)
	if o.Control != nil {
		o.Control(&config)
	}
	s.Control = control.New(config)
	if o.Machines > 0 {
		s.AddMachines(o.Machines)
	}
	if o.Build {
		stop := s.build()
		t.Cleanup(stop)
	}
	s.Serve()
	t.Cleanup(s.StopServing)
	return s
}

// site is what the providers of the machines of tests can do.
func site() muster.Providers {
	return muster.Providers{
		"fake":  {Simulated: true, Trust: muster.TrustLocal},
		"metal": {OwnKernel: true, RootInMemory: true, OffWhenFree: true, Trust: muster.TrustNetwork},
	}
}

// Serve listens on the socket. It may be stopped and served again, as a
// server that is restarted.
func (s *Site) Serve() {
	s.T.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	config := api.Config{Service: s.Control, Auth: s.Store, Version: "test", Heartbeat: 50 * time.Millisecond, BodyTime: 2 * time.Second}
	if s.options.API != nil {
		s.options.API(&config)
	}
	s.API = api.New(config)
	server := s.API.HTTPServer()
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "unix", s.Socket)
	if err != nil {
		s.T.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(l) }()
	s.stop = func() { s.API.Close(); _ = server.Close(); <-done }
}

// StopServing ends the listening server and all its connections.
func (s *Site) StopServing() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stop != nil {
		s.stop()
		s.stop = nil
	}
}

// Client speaks to the site: as the administrator, or with a token.
func (s *Site) Client(token string) *client.Client {
	s.T.Helper()
	k, err := client.New(client.Config{Server: "unix:" + s.Socket, Token: token, Retry: time.Millisecond})
	if err != nil {
		s.T.Fatal(err)
	}
	s.T.Cleanup(k.Close)
	return k
}

// User makes a user and gives a token of theirs.
func (s *Site) User(name string, projects ...string) string {
	s.T.Helper()
	root := muster.Actor{Name: "root", Admin: true}
	if _, err := s.Control.PutUser(s.T.Context(), root, wire.UserRequest{Name: name, Projects: projects}); err != nil {
		s.T.Fatal(err)
	}
	token, err := s.Control.CreateToken(s.T.Context(), root, wire.TokenRequest{User: name})
	if err != nil {
		s.T.Fatal(err)
	}
	return token.Secret
}

// AddMachines adds so many free machines of four cores and 8 GiB.
func (s *Site) AddMachines(n int) {
	s.T.Helper()
	err := s.Store.Update(context.Background(), muster.System(), func(tx *store.Tx) error {
		for i := range n {
			m := muster.Machine{
				ID: muster.MachineID(fmt.Sprintf("fake-%02d", i+1)), Provider: "fake", Phase: muster.MachineNew,
				Facts: muster.Facts{
					Architecture: "amd64", Processor: "Fake 9000", CPULevel: 3, Sockets: 1, Cores: 4, Threads: 4,
					Memory: 8 << 30, Disk: 100 << 30, Class: "standard", Rack: fmt.Sprintf("r%d", i/8+1),
					NICs:       []muster.NIC{{Name: "msg0", MAC: fmt.Sprintf("02:00:00:00:00:%02x", i), Kind: "veth", Speed: 10e9, Use: "message"}},
					Management: netip.AddrFrom4([4]byte{10, 90, 1, byte(i + 1)}),
				},
			}
			for _, p := range []muster.MachinePhase{muster.MachineNew, muster.MachineCleaning, muster.MachineFree} {
				m.Phase = p
				if err := tx.PutMachine(m, ""); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		s.T.Fatal(err)
	}
}
