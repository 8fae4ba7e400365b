package nfs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/atomicfile"
)

// Port is where NFS is served unless a site says otherwise.
const Port = 2049

// Config of a Server. Dir and Address are required.
type Config struct {
	// Dir is a directory of the server's own. Another server needs another.
	Dir string
	// Address, of IPv4, of the network on which machines are booted and managed; nothing
	// is served elsewhere.
	Address netip.Addr
	Port    uint16 // 0: Port
	// Program is ganesha.nfsd. Empty: as it is found.
	Program string
	// In runs a function in the network namespace that has the address; nil: the
	// caller's.
	In func(func() error) error
	// Ends: nothing runs while nobody may mount anything. Otherwise ganesha goes on, for who comes next.
	Ends bool
	// Held: it does not run until Serve.
	Held bool
	// Lease is for how long a client has its locks without a word, and Grace for how long a server that starts waits for
	// clients to claim theirs; it waits less when all have. In whole seconds; 0: half a minute.
	Lease, Grace time.Duration
	Clock        muster.Clock
	Log          *slog.Logger
}

// Server is a ganesha that serves what Set said last. Its methods may be called
// concurrently.
type Server struct {
	cfg Config
	own map[uint64]bool
	// separate leaves out what a handle could lead out of.
	separate func(set []Export, own map[uint64]bool) (good []Export, bad []error)

	mu      sync.Mutex
	state   state
	child   *child    // nil: none runs as far as is known
	wanted  bool      // it is to run
	held    bool      // it does not run nevertheless, until Serve
	started time.Time // zero: an earlier server started it
	last    error     // of the last try to serve what is wanted
	changed chan struct{}
}

// Open finds the ganesha that an earlier server left, and starts none: what is
// exported may not be mounted yet. EUnavailable: there is no such program.
func Open(cfg Config) (*Server, error) {
	if cfg.Port == 0 {
		cfg.Port = Port
	}
	if cfg.Clock == nil {
		cfg.Clock = muster.SystemClock{}
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.In == nil {
		cfg.In = func(f func() error) error { return f() }
	}
	for _, d := range []*time.Duration{&cfg.Lease, &cfg.Grace} {
		if *d == 0 {
			*d = lease
		}
	}
	if cfg.Program == "" {
		cfg.Program = "ganesha.nfsd"
	}
	if !cfg.Address.Is4() || cfg.Address.IsUnspecified() {
		return nil, muster.Errorf(muster.EInvalid, "volumes cannot be served at %q", cfg.Address).Because(muster.ReasonBadAddress).
			WithHint("give the interface of bare machines an address of IPv4")
	}
	program, err := exec.LookPath(cfg.Program)
	if err != nil {
		return nil, muster.Errorf(muster.EUnavailable, "volumes cannot be served over the network: there is no %s", cfg.Program).Because(muster.ReasonProgramMissing).
			WithHint("install the packages nfs-ganesha and nfs-ganesha-vfs, then start the server again").Wrap(err)
	}
	cfg.Program = program
	if !pathForm.MatchString(cfg.Dir) {
		return nil, muster.Errorf(muster.EInvalid, "%.200q cannot hold what is served", cfg.Dir).Because(muster.ReasonBadValue).
			WithHint("keep Muster's state at an absolute path of letters, digits and -_.+@:~")
	}
	if err := os.MkdirAll(filepath.Join(cfg.Dir, recoveryName), 0o700); err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, separate: apart, held: cfg.Held, changed: make(chan struct{}, 1)}
	if s.own, err = ownFileSystems(cfg.Dir); err != nil {
		return nil, err
	}
	if s.state, err = readState(s.path("exports.json")); err != nil {
		return nil, fmt.Errorf("read %s: %w", s.path("exports.json"), err)
	}
	if err := s.adopt(); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Server) path(name string) string { return filepath.Join(s.cfg.Dir, name) }

func (s *Server) listen() netip.AddrPort { return netip.AddrPortFrom(s.cfg.Address, s.cfg.Port) }

// adopt takes over the ganesha that runs.
func (s *Server) adopt() error {
	c, err := find(s.path("pid"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("find ganesha again: %w", err)
	}
	s.child, s.wanted, s.started = c, true, time.Time{}
	return nil
}

// Set makes the exports be these and no others. What was wanted is on disk before
// anything changes; exports that stay are not disturbed, and a client that is not
// named any more gets nothing from its next request on. An error of one export leaves
// the others in force; Set may be repeated.
func (s *Server) Set(ctx context.Context, set []Export) error {
	set = sorted(set)
	for i, e := range set {
		if err := e.check(); err != nil {
			return err
		}
		if i > 0 && set[i-1].Name == e.Name {
			return muster.Errorf(muster.EInvalid, "export %s is named twice", e.Name).Because(muster.ReasonGivenTwice)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	next, err := s.state.want(set)
	if err != nil {
		return err
	}
	if err := next.write(s.path("exports.json")); err != nil {
		return fmt.Errorf("write down exports: %w", err)
	}
	s.state = next
	if s.cfg.Ends {
		s.wanted = slices.ContainsFunc(set, func(e Export) bool { return len(e.Clients) > 0 })
	} else {
		s.wanted = s.wanted || len(set) > 0
	}
	err = s.apply(ctx)
	select {
	case s.changed <- struct{}{}:
	default:
	}
	return err
}

// Failing reports why not all is served that Set asked for; nil: it is.
func (s *Server) Failing() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wanted && !s.held && (s.child == nil || !s.child.alive()) {
		return muster.Errorf(muster.EUnavailable, "the server of volumes has ended and is started again").Because(muster.ReasonVolumeFailed).WithHint("the reason is in %s", s.path("log"))
	}
	return s.last
}

// apply has ganesha serve what is wanted. The lock is held.
func (s *Server) apply(ctx context.Context) (err error) {
	defer func() { s.last = err }()
	good, bad := s.separate(s.state.Exports, s.own)
	if err := atomicfile.Replace(s.path("exports.conf"), []byte(exportsText(good, s.state.Numbers)), 0o600); err != nil {
		return err
	}
	if !s.wanted || s.held {
		if s.child != nil {
			bad = append(bad, s.child.stop(grace))
			s.drop()
		}
		if s.cfg.Ends && !s.held { // who comes next has nothing to claim
			bad = append(bad, s.forgetClients())
		}
		return errors.Join(bad...)
	}
	failed, e := s.reach(ctx)
	for _, name := range failed {
		bad = append(bad, muster.Errorf(muster.EUnavailable, "%s cannot be exported", name).Because(muster.ReasonVolumeFailed).WithHint("the reason is in %s", s.path("log")))
	}
	return errors.Join(append(bad, e)...)
}

// reach makes a running ganesha read its exports, or starts one.
func (s *Server) reach(ctx context.Context) (failed []string, err error) {
	main := mainText(s.listen(), s.cfg.Lease, s.cfg.Grace, s.path(recoveryName), s.path("exports.conf"))
	was, _ := os.ReadFile(s.path("ganesha.conf"))
	if s.child != nil && s.child.alive() && string(was) != main {
		s.cfg.Log.Info("restarting NFS server: address changed", "address", s.listen())
		if err := s.child.stop(grace); err != nil {
			return nil, err
		}
	}
	rotate(s.path("log"))
	from := size(s.path("log"))
	if s.child != nil && s.child.alive() {
		if err := s.child.signal(unix.SIGHUP); err != nil {
			return nil, err
		}
		return await(ctx, s.cfg.Clock, s.path("log"), from, rereadLine, s.child.alive)
	}
	s.drop()
	if string(was) != main {
		if err := atomicfile.Replace(s.path("ganesha.conf"), []byte(main), 0o600); err != nil {
			return nil, err
		}
	}
	c, err := start([]string{
		s.cfg.Program, "-F", "-f", s.path("ganesha.conf"), "-L", s.path("log"), "-p", s.path("pid"), "-N", "NIV_EVENT",
	}, s.path("out"), s.cfg.In)
	if err != nil {
		return nil, err
	}
	s.child, s.started = c, s.cfg.Clock.Now()
	return await(ctx, s.cfg.Clock, s.path("log"), from, readyLine, c.alive)
}

func (s *Server) drop() {
	if s.child != nil {
		s.child.close()
		s.child = nil
	}
}

// Close lets go of ganesha, which goes on serving. The Server is not used again.
func (s *Server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop()
}
