package agentserver

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/ratelimit"
	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// Config of a Server. Store, Sign and Configure are required.
type Config struct {
	Store *store.DB
	// Sign makes a node's certificate from its signing request.
	Sign func(csrPEM string, id pki.NodeIdentity, ttl time.Duration) (certPEM string, expires time.Time, err error)
	// Configure builds the configuration of a node.
	Configure func(ctx context.Context, cluster muster.ClusterID, node string) (wire.NodeConfig, error)
	// Generation is that of a cluster's newest configuration: what is cheaper
	// to know than the configuration. Nil: the configuration is built to know.
	Generation func(ctx context.Context, cluster muster.ClusterID) (int64, error)
	// Changed is told that agents of the cluster have said something that
	// matters. It must return at once. Nil: nobody listens.
	Changed func(muster.ClusterID)
	// Stage is told of boot stages as they are reported. It must return at once.
	Stage func(wire.Event)
	// Sample is told what a node uses when it says so; boot tells starts of the
	// machine apart, if it is known. It must return at once. Nil: nobody listens.
	Sample func(now time.Time, id pki.NodeIdentity, boot string, u wire.Usage)
	// WantSeconds reports whether a node is to say how busy its processors are in each
	// second, and Seconds is told when it does. Both must return at once. Nil: nobody
	// wants to know.
	WantSeconds func(id muster.ClusterID, node string) bool
	Seconds     func(now time.Time, id pki.NodeIdentity, u wire.UsageSeconds)
	// Launch is what a node's agent is to run now; it must return at once. Nil:
	// nothing, ever.
	Launch func(id muster.ClusterID, node string) *wire.LaunchOrder
	// Launched is told how a launch went, and what was printed, before it
	// returns what to run next. EConflict: nobody waits for it.
	Launched func(ctx context.Context, id pki.NodeIdentity, end wire.LaunchEnd, out io.Reader) (*wire.LaunchOrder, error)
	// Save is what is asked of a node's root file system now; it must return at once. Nil:
	// nothing, ever.
	Save func(id muster.ClusterID, node string) *wire.SaveOrder
	// Hibernate is what the machine of a node is to do for a pause; nil: nothing. It holds a key.
	Hibernate func(id muster.ClusterID, node string) *wire.HibernateOrder
	// Saved is given the root file system of a node, as a tar, and returns when it has read
	// it. EConflict: nobody waits for it.
	Saved func(ctx context.Context, id pki.NodeIdentity, save string, root io.Reader) error
	// Trust says how much a machine's first exchange can be trusted. Nil:
	// no more than the network can.
	Trust func(m muster.Machine) muster.Trust
	// Still reports whether a machine was made to stand still: nobody waits for its agent. It
	// must return at once. Nil: none is.
	Still func(muster.MachineID) bool
	// JournalDir keeps the nodes' journals, one folder for each cluster. Empty:
	// journals are kept in memory only.
	JournalDir string
	Clock      muster.Clock
	Log        *slog.Logger
	// CertificateLife is how long a node's certificate is good. 0: pki.NodeTTL.
	CertificateLife time.Duration
	// IntervalBooting and IntervalReady are how often an agent reports though
	// nothing happened. 0: 1 s and 3 s; with many agents IntervalReady grows.
	IntervalBooting, IntervalReady time.Duration
	// WatchTime is how long a watch waits. 0: a minute.
	WatchTime time.Duration
	// Epoch is that of the server's records, which agents are told. 0: 1.
	Epoch int64
	// Superseded means that another server has taken this one's place: then agents are given
	// nothing any more. Nil: none ever does.
	Superseded func() bool
	// Met is told, with the first request on a connection, of each node that has proven there
	// that it holds the key of a certificate of this site, also of one that the records do not
	// know. It must be quick. Nil: nobody listens.
	Met func(id pki.NodeIdentity)
	// Identify reports who asks. Nil: the client certificate does.
	Identify func(*http.Request) (pki.NodeIdentity, error)
}

// maxKeys bounds what strangers can make the server remember.
const maxKeys = 20000

// Server answers agents.
type Server struct {
	c        Config
	presence *presence
	monitor  *monitor
	journal  *journal
	counts   counts
	orders   *orders
	limits   *ratelimit.Keyed[muster.MachineID]
	joins    *ratelimit.Keyed[netip.Addr]
	refusals *ratelimit.Keyed[netip.Addr]
	hosts    hostLists
	mux      *http.ServeMux
	epoch    []string // as it is told
	closed   context.Context
	close    context.CancelFunc

	mu      sync.Mutex
	changed map[muster.ClusterID]chan struct{} // closed when the configuration may be newer
	newest  map[muster.ClusterID]int64         // generation that was built last
	telling map[muster.ClusterID]bool          // will be told of a change in a moment
	spoken  map[nodeKey]chan struct{}          // a word for a node that is to report at once
}

// nodeKey names a node.
type nodeKey struct {
	cluster muster.ClusterID
	node    string
}

// New makes a Server.
func New(c Config) (*Server, error) {
	if c.Store == nil || c.Sign == nil || c.Configure == nil {
		return nil, errors.New("agents: a store, a signer and a configuration are required")
	}
	if c.Clock == nil {
		c.Clock = muster.SystemClock{}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Changed == nil {
		c.Changed = func(muster.ClusterID) {}
	}
	if c.Stage == nil {
		c.Stage = func(wire.Event) {}
	}
	if c.Sample == nil {
		c.Sample = func(time.Time, pki.NodeIdentity, string, wire.Usage) {}
	}
	if c.WantSeconds == nil {
		c.WantSeconds = func(muster.ClusterID, string) bool { return false }
	}
	if c.Seconds == nil {
		c.Seconds = func(time.Time, pki.NodeIdentity, wire.UsageSeconds) {}
	}
	if c.Launch == nil {
		c.Launch = func(muster.ClusterID, string) *wire.LaunchOrder { return nil }
	}
	if c.Hibernate == nil {
		c.Hibernate = func(muster.ClusterID, string) *wire.HibernateOrder { return nil }
	}
	if c.Save == nil {
		c.Save = func(muster.ClusterID, string) *wire.SaveOrder { return nil }
	}
	if c.Trust == nil {
		c.Trust = func(muster.Machine) muster.Trust { return muster.TrustNetwork }
	}
	if c.Identify == nil {
		c.Identify = func(r *http.Request) (pki.NodeIdentity, error) { return pki.NodeFromTLS(r.TLS) }
	}
	if c.Superseded == nil {
		c.Superseded = func() bool { return false }
	}
	if c.Met == nil {
		c.Met = func(pki.NodeIdentity) {}
	}
	def(&c.Epoch, 1)
	def(&c.CertificateLife, pki.NodeTTL)
	def(&c.IntervalBooting, time.Second)
	def(&c.IntervalReady, 3*time.Second)
	def(&c.WatchTime, time.Minute)
	s := &Server{
		c: c, presence: newPresence(), monitor: newMonitor(c.Clock.Now()), journal: newJournal(c.JournalDir, c.Log, c.Clock),
		limits:   ratelimit.New[muster.MachineID](ratelimit.Config{Now: c.Clock.Now, Every: time.Second / 20, Burst: 60, Most: maxKeys}),
		joins:    ratelimit.New[netip.Addr](ratelimit.Config{Now: c.Clock.Now, Every: time.Second / 5, Burst: 20, Most: maxKeys}),
		refusals: ratelimit.New[netip.Addr](ratelimit.Config{Now: c.Clock.Now, Every: time.Second, Burst: 20, Most: maxKeys}),
		orders:   newOrders(), mux: http.NewServeMux(), changed: map[muster.ClusterID]chan struct{}{}, newest: map[muster.ClusterID]int64{},
		telling: map[muster.ClusterID]bool{}, spoken: map[nodeKey]chan struct{}{},
		epoch: []string{strconv.FormatInt(c.Epoch, 10)},
	}
	s.closed, s.close = context.WithCancel(context.Background())
	s.mux.HandleFunc("POST /v1/join", s.join)
	s.mux.HandleFunc("POST /v1/renew", s.renew)
	s.mux.HandleFunc("GET /v1/config", s.config)
	s.mux.HandleFunc("GET /v1/hosts/{digest}", s.hostList)
	s.mux.HandleFunc("GET /v1/watch", s.watch)
	s.mux.HandleFunc("POST /v1/report", s.report)
	s.mux.HandleFunc("POST /v1/launches", s.launched)
	s.mux.HandleFunc("POST /v1/saves/{id}", s.saved)
	return s, nil
}

func def[T int64 | time.Duration](p *T, d T) {
	if *p == 0 {
		*p = d
	}
}

// Close ends the watches under way, so that a server can shut down. Other
// requests are answered as before.
func (s *Server) Close() { s.close() }

// ServeHTTP answers one request of an agent.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header()[wire.EpochHeader] = s.epoch
	if s.c.Superseded() {
		// Not that its attempt is over: that is for the server to say that took our place.
		wire.WriteError(w, http.StatusServiceUnavailable, muster.Errorf(muster.EUnavailable, "another server has taken this one's place").Because(muster.ReasonServerReplaced).
			WithHint("an administrator stops this server; the node works on"))
		return
	}
	s.mux.ServeHTTP(w, r)
}

// gather is how long changes of a configuration gather before agents are told:
// a change of a thousand nodes is not a thousand changes for each of them.
const gather = 10 * time.Millisecond

// ConfigChanged tells the agents of a cluster that there may be a newer
// configuration, in a moment.
func (s *Server) ConfigChanged(id muster.ClusterID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed[id] == nil || s.telling[id] {
		return // nobody waits, or will be told anyhow
	}
	s.telling[id] = true
	time.AfterFunc(gather, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.telling, id)
		if c := s.changed[id]; c != nil {
			close(c)
			delete(s.changed, id)
		}
	})
}

func (s *Server) nextChange(id muster.ClusterID) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.changed[id]
	if c == nil {
		c = make(chan struct{})
		s.changed[id] = c
	}
	return c
}

// build builds a node's configuration and remembers how new it is.
func (s *Server) build(ctx context.Context, id muster.ClusterID, node string) (wire.NodeConfig, error) {
	c, err := s.c.Configure(ctx, id, node)
	if err == nil {
		s.mu.Lock()
		s.newest[id] = max(s.newest[id], c.Generation)
		s.mu.Unlock()
	}
	return c, err
}

// generation of the newest configuration of a cluster that was built; 0 when
// none was since this server started.
func (s *Server) generation(id muster.ClusterID) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.newest[id]
}

// ForgetCluster drops what is kept in memory about a cluster that is gone.
func (s *Server) ForgetCluster(id muster.ClusterID) {
	s.ConfigChanged(id)
	s.hosts.forget(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.newest, id)
	for key := range s.spoken {
		if key.cluster == id {
			delete(s.spoken, key)
		}
	}
}

// Forget drops what is kept in memory about a machine that left its node.
func (s *Server) Forget(id muster.MachineID) {
	s.presence.forget(id)
	s.monitor.leave(id)
}

// refuse answers with an error that says what went wrong and nothing more.
func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// fail answers an error of the store or of the configuration.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil {
		return
	}
	s.c.Log.Warn("agent request failed", "path", r.URL.Path, "error", err)
	wire.WriteError(w, http.StatusServiceUnavailable, muster.Errorf(muster.EUnavailable, "the server cannot answer now").WithHint("try again"))
}

// source is the address that a request came from.
func source(r *http.Request) netip.Addr {
	a, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return a.Addr().Unmap()
}
