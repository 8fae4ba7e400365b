package daemon

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/measure"
	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/validate"
	"github.com/muster-hpc/muster/wire"
)

// openMeasure makes what has clusters measured.
func (s *Server) openMeasure() error {
	var err error
	s.measure, err = measure.New(measure.Config{
		Store: s.db, Dir: s.state.path("measuring"), Sign: s.signing.Sign, Admit: s.admitProbe, Place: s.place, Providers: s.capabilities,
		Speak: s.agents.Speak, Wake: func(id muster.ClusterID) { s.converge.Wake(id) },
		Usage: s.agents.Usage, Scheduler: s.scheduler, Promises: s.cfg.Promises, Issuer: s.instance, Clock: s.cfg.Clock, Log: s.log,
	})
	return err
}

// idleLook is how often idle machines are looked for that should be measured.
const idleLook = time.Minute

// measureIdle has machines measured that nobody uses.
func (s *Server) measureIdle(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.cfg.Clock.After(idleLook):
		}
		if err := s.control.MeasureIdle(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn("idle machines are not measured", "error", err)
		}
	}
}

// place is where a machine is. Those that are cut from this host share it.
func (s *Server) place(m muster.Machine) validate.Place {
	p := validate.Place{Rack: m.Facts.Rack}
	if s.capabilities.Of(m.Provider).SharesHost {
		p.Host = s.instance
	}
	return p
}

// admitProbe makes a key for one launch. Only the account that measures is let in
// by it, and only into the nodes of one cluster.
func (s *Server) admitProbe(ctx context.Context, id muster.ClusterID, life time.Duration) (key, certificate string, err error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return "", "", err
	}
	var raw []byte
	err = s.db.View(ctx, muster.System(), func(tx *store.Tx) (err error) {
		raw, err = tx.Secret(id, muster.SecretUserCA)
		return err
	})
	if err != nil {
		return "", "", err
	}
	authority, err := pki.ParseSSHAuthority(raw)
	if err != nil {
		return "", "", err
	}
	signer, err := ssh.NewPublicKey(public)
	if err != nil {
		return "", "", err
	}
	cert, err := authority.SignUser(signer, "muster:measuring:"+string(id), []string{wire.ProbeAccount + "@" + string(id)}, life)
	if err != nil {
		return "", "", err
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		return "", "", err
	}
	return string(pem.EncodeToMemory(block)), pki.Line(cert) + "\n", nil
}
