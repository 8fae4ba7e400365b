package agentserver

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/x509"
	"encoding/binary"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/netip"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// errRefused is all that a refused agent learns: not which part was wrong.
var errRefused = muster.Errorf(muster.EUnauth, "the join was refused").Because(muster.ReasonJoinRefused)

// join exchanges a one-time token for a certificate. The token is consumed in
// the transaction that moves its node on, together with a fingerprint of the
// key that it was redeemed for: the same machine may ask again when the answer
// was lost, and nobody else can, even with the token.
func (s *Server) join(w http.ResponseWriter, r *http.Request) {
	from := source(r)
	if !s.joins.Allow(from) {
		wire.WriteError(w, http.StatusTooManyRequests, muster.Errorf(muster.EUnavailable, "too many joins from this address").Because(muster.ReasonTooManyRequests).WithHint("try again in a second"))
		return
	}
	q, err := DecodeJoin(r.Body)
	if err != nil {
		wire.WriteError(w, status(err), asError(err))
		return
	}
	key, err := csrKey(q.CSR)
	if err != nil {
		wire.WriteError(w, http.StatusBadRequest, muster.Errorf(muster.EInvalid, "the signing request is not one").Because(muster.ReasonBadValue))
		return
	}
	hash := pki.HashToken(q.Token)
	id, first, err := s.redeem(r.Context(), q, hash, fingerprint(hash, key, q.Attempt), from)
	switch muster.CodeOf(err) {
	case "":
	case muster.EUnauth:
		s.auditRefusal(q, from, err)
		wire.WriteError(w, http.StatusUnauthorized, errRefused)
		return
	default:
		s.fail(w, r, err)
		return
	}
	cert, expires, ok := s.sign(w, r, q.CSR, id)
	if !ok {
		return
	}
	s.orders.begins(id)
	s.orders.hears(id.Machine, s.c.Clock.Now())
	s.journal.begins(id)
	s.presence.begin(id, s.c.Clock.Now(), s.c.IntervalBooting)
	s.c.Changed(id.Cluster)
	reply := wire.JoinReply{
		Protocol: wire.AgentProtocol, Certificate: cert, Expires: expires, Interval: muster.Duration(s.c.IntervalBooting),
	}
	// Whoever asks again has not shown anew that the key is theirs.
	if conn := callerOf(r); conn != nil && first {
		conn.node = &id
		reply.Speak = true
	}
	// Without a configuration the agent asks for it by itself.
	if c, err := s.build(r.Context(), id.Cluster, id.Node); err == nil {
		s.apart(r, &c)
		reply.Config = &c
	} else {
		s.c.Log.Warn("node joined, configuration not ready", "cluster", id.Cluster, "node", id.Node, "error", err)
	}
	answer(w, reply)
}

// sign makes the certificate, or answers why not.
func (s *Server) sign(w http.ResponseWriter, r *http.Request, csr string, id pki.NodeIdentity) (cert string, expires time.Time, ok bool) {
	cert, expires, err := s.c.Sign(csr, id, s.c.CertificateLife)
	switch muster.CodeOf(err) {
	case "":
		return cert, expires, true
	case muster.EInvalid:
		wire.WriteError(w, http.StatusBadRequest, muster.Errorf(muster.EInvalid, "the signing request is not one").Because(muster.ReasonBadValue))
	default:
		s.fail(w, r, err)
	}
	return "", time.Time{}, false
}

// redeem consumes the token and moves the node to configuring. EUnauth: the
// token, the machine, the attempt, the address or the node's phase is wrong;
// the error's cause says which, for the audit. first: not asked again by who
// redeemed it before.
func (s *Server) redeem(ctx context.Context, q wire.JoinRequest, hash [32]byte, print []byte, from netip.Addr) (id pki.NodeIdentity, first bool, err error) {
	now := s.c.Clock.Now()
	who := muster.Actor{Name: "agent:" + text(string(q.Machine), maxName), Admin: true}
	err = s.c.Store.Update(ctx, who, func(tx *store.Tx) error {
		first = false // it may run twice
		m, err := tx.Machine(q.Machine)
		if muster.CodeOf(err) == muster.ENotFound {
			return refusal("there is no such machine")
		}
		if err != nil {
			return err
		}
		if a := m.Facts.Management; a.IsValid() && a.Unmap() != from {
			return refusal("it came from another address than the machine's")
		}
		if m.Phase != muster.MachineActive {
			return refusal("the machine runs nothing")
		}
		n, err := tx.Node(m.Cluster, m.Node)
		if err != nil {
			return err
		}
		id = pki.NodeIdentity{Machine: m.ID, Cluster: n.Cluster, Node: n.Name, Attempt: n.Attempt}
		name := "join/" + n.Name
		j, err := tx.UseJoin(hash, now)
		if muster.CodeOf(err) == muster.EUnauth {
			// Spent, wrong or late: only who redeemed it may have it again.
			have, err := tx.Secret(n.Cluster, name)
			if err != nil && muster.CodeOf(err) != muster.ENotFound {
				return err
			}
			if n.Phase != muster.NodeConfiguring || n.Attempt != q.Attempt || subtle.ConstantTimeCompare(have, print) != 1 {
				return refusal("the token is spent, late or wrong")
			}
			return nil
		}
		if err != nil {
			return err
		}
		if j.Machine != m.ID || j.Cluster != n.Cluster || j.Node != n.Name || j.Attempt != q.Attempt || n.Attempt != q.Attempt || n.Phase != muster.NodeBooting {
			return refusal("the token is for another machine, node or attempt")
		}
		if err := tx.PutSecret(n.Cluster, name, print); err != nil {
			return err
		}
		first = true
		return s.moveOn(tx, m, n, now)
	})
	return id, first, err
}

// moveOn moves the node on to configuring.
func (s *Server) moveOn(tx *store.Tx, m muster.Machine, n muster.Node, now time.Time) error {
	c, err := tx.Cluster(n.Cluster)
	if err != nil {
		return err
	}
	if c.Pause == nil || c.Pause.OnPause != muster.PauseSave && c.Pause.OnPause != muster.PauseHibernate { // that goes on, and is no boot
		err = tx.PutDuration("boot", m.Facts.Class, string(c.Image), now.Sub(n.PhaseSince))
	}
	if err != nil {
		return err
	}
	n.Phase, n.PhaseSince, n.Deadline, n.NotBefore = muster.NodeConfiguring, now, time.Time{}, time.Time{}
	n.Trust = s.c.Trust(m)
	if m.Facts.Management.IsValid() {
		n.Management = m.Facts.Management
	}
	return tx.PutNode(n, "")
}

func refusal(why string) error {
	return muster.Errorf(muster.EUnauth, "%s", why).Because(muster.ReasonJoinRefused)
}

// auditRefusal leaves a line about a refused join, in the site's history: anybody may have
// named the machine that it is about, and so no cluster's people read of it. A flood of
// them, from one place, does not become a flood of lines, and hides nobody else's.
func (s *Server) auditRefusal(q wire.JoinRequest, from netip.Addr, why error) {
	if !s.refusals.Allow(from) {
		return
	}
	s.c.Log.Warn("node join rejected", "machine", text(string(q.Machine), maxName), "from", from, "reason", why)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err := s.c.Store.Update(ctx, muster.System(), func(tx *store.Tx) error {
		return tx.Note(muster.AuditMachine, text(string(q.Machine), maxName), "", fmt.Sprintf("join refused, from %s: %v", from, why))
	})
	if err != nil {
		s.c.Log.Error("recording rejected join failed", "error", err)
	}
}

// csrKey returns the public key that a signing request asks for. Whether who
// asks has the other half is for Sign to check.
func csrKey(csrPEM string) ([]byte, error) {
	b, _ := pem.Decode([]byte(csrPEM))
	if b == nil || b.Type != "CERTIFICATE REQUEST" {
		return nil, errRefused
	}
	csr, err := x509.ParseCertificateRequest(b.Bytes)
	if err != nil {
		return nil, err
	}
	return csr.RawSubjectPublicKeyInfo, nil
}

// fingerprint binds a token to the key that it was redeemed for.
func fingerprint(token [32]byte, key []byte, attempt int64) []byte {
	h := sha256.New()
	h.Write(token[:])
	_ = binary.Write(h, binary.BigEndian, attempt)
	h.Write(key)
	return h.Sum(nil)
}
