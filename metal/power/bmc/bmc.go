// Package bmc is a management controller: it speaks IPMI 2.0 and Redfish and
// drives a Chassis. A rack of the lab has one for each machine, and the drivers
// of package power are tested against it.
//
// It is no canned answer. Its state is that of its chassis, its session numbers
// and nonces are random, passwords and signatures are checked, and faults can
// be set while it runs.
package bmc

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"

	"github.com/muster-hpc/muster"
)

// Config is what a controller is made of.
type Config struct {
	Chassis Chassis
	// User and Password of its only account, which may do everything unless
	// Role says less. At most 16 and 20 bytes, for IPMI's sake.
	User, Password string
	// Key is its K_G, from which it derives the keys of IPMI's sessions; "": it has none,
	// and the password is used.
	Key string
	// Role is the account's privilege in IPMI's numbers, 4 (administrator) if 0.
	Role byte
	// Serial is shown by Redfish.
	Serial string
	// IPMI is the UDP address to listen at, Redfish the TCP one; "" for
	// neither. Port 0 takes a free one.
	IPMI, Redfish string
	// Certificate for HTTPS; nil makes one that signs itself.
	Certificate *tls.Certificate
	// Sessions is how many there may be at a time, for each of both; 0: 8.
	Sessions int
	// Model is what is special about its Redfish.
	Model Model
	Clock muster.Clock
	Log   *slog.Logger
}

// BMC is a controller that runs.
type BMC struct {
	cfg   Config
	clock muster.Clock
	log   *slog.Logger
	guid  [16]byte

	ctx    context.Context
	cancel context.CancelFunc
	wait   sync.WaitGroup
	udp    net.PacketConn
	tcp    net.Listener
	http   *http.Server
	cert   tls.Certificate

	// act serializes what is done to the chassis.
	act sync.Mutex

	mu       sync.Mutex
	faults   Faults
	boot     override
	ipmi     map[uint32]*ipmiSession
	web      map[string]*webSession
	attempts int // to log in with a wrong password
}

// Start runs a controller until Close.
func Start(cfg Config) (*BMC, error) {
	if cfg.Sessions == 0 {
		cfg.Sessions = 8
	}
	if cfg.Role == 0 {
		cfg.Role = 4
	}
	if cfg.Clock == nil {
		cfg.Clock = muster.SystemClock{}
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	b := &BMC{cfg: cfg, clock: cfg.Clock, log: cfg.Log, ipmi: map[uint32]*ipmiSession{}, web: map[string]*webSession{}}
	b.boot = b.none(0)
	_, _ = rand.Read(b.guid[:]) // never fails: crypto/rand aborts the program instead
	b.ctx, b.cancel = context.WithCancel(context.Background())
	if err := b.listen(); err != nil {
		_ = b.Close()
		return nil, err
	}
	return b, nil
}

func (b *BMC) listen() error {
	var lc net.ListenConfig
	if b.cfg.IPMI != "" {
		udp, err := lc.ListenPacket(b.ctx, "udp", b.cfg.IPMI)
		if err != nil {
			return muster.Errorf(muster.EUnavailable, "the controller cannot listen for IPMI at %s", b.cfg.IPMI).Wrap(err)
		}
		b.udp = udp
		b.wait.Go(b.serveIPMI)
	}
	if b.cfg.Redfish != "" {
		cert, err := b.certificate()
		if err != nil {
			return err
		}
		b.cert = cert
		tcp, err := lc.Listen(b.ctx, "tcp", b.cfg.Redfish)
		if err != nil {
			return muster.Errorf(muster.EUnavailable, "the controller cannot listen for Redfish at %s", b.cfg.Redfish).Wrap(err)
		}
		b.tcp = tls.NewListener(tcp, &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12})
		b.http = b.newServer()
		b.wait.Go(func() {
			if err := b.http.Serve(b.tcp); !errors.Is(err, http.ErrServerClosed) {
				b.log.Error("Redfish server exited", "error", err)
			}
		})
	}
	return nil
}

// Close ends the controller. The chassis stays as it is.
func (b *BMC) Close() error {
	b.cancel()
	if b.udp != nil {
		_ = b.udp.Close()
	}
	if b.http != nil {
		_ = b.http.Close()
	}
	b.wait.Wait()
	return nil
}

// IPMI is the UDP port that it listens at, 0 if it does not.
func (b *BMC) IPMI() int {
	if b.udp == nil {
		return 0
	}
	return b.udp.LocalAddr().(*net.UDPAddr).Port
}

// Redfish is the TCP port that it listens at, 0 if it does not.
func (b *BMC) Redfish() int {
	if b.tcp == nil {
		return 0
	}
	return b.tcp.Addr().(*net.TCPAddr).Port
}

// Certificate is what HTTPS shows.
func (b *BMC) Certificate() (*x509.Certificate, error) {
	return x509.ParseCertificate(b.cert.Certificate[0])
}

// Sessions counts those that are open, of both protocols.
func (b *BMC) Sessions() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := len(b.web)
	for _, s := range b.ipmi {
		if s.open {
			n++
		}
	}
	return n
}

// Refused counts how often somebody came with a wrong password. Controllers
// lock an account after a few.
func (b *BMC) Refused() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.attempts
}

func (b *BMC) refuse() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.attempts++
}

// password is the one that holds now.
func (b *BMC) password() string {
	if b.Broken().OtherPassword {
		return b.cfg.Password + "!"
	}
	return b.cfg.Password
}
