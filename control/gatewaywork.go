package control

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
	"golang.org/x/crypto/ssh"
)

// gatewayProcesses is what is known of gateways that are processes of their own since this server
// started.
type gatewayProcesses struct {
	mu sync.Mutex
	of map[string]*gatewayProcess
}

type gatewayProcess struct {
	seen             time.Time
	address, hostKey string
	live             map[muster.GatewaySessionID]muster.GatewaySession
	kill             map[muster.GatewaySessionID]killing // until it is on record that the session has ended
	noted            time.Time                           // when bytes were recorded
}

// killing is a session that somebody ends.
type killing struct {
	text string
	said time.Time // when its gateway heard of it first; the zero value: it has not yet
}

// endNotSaid is how long a gateway has to say that a session has ended which it does not have any more.
const endNotSaid = time.Minute

// process is that of one gateway. The caller holds g.mu.
func (g *gatewayProcesses) process(name string) *gatewayProcess {
	p := g.of[name]
	if p == nil {
		if g.of == nil {
			g.of = map[string]*gatewayProcess{}
		}
		p = &gatewayProcess{kill: map[muster.GatewaySessionID]killing{}}
		g.of[name] = p
	}
	return p
}

// bytesRecorded is how often the bytes of open sessions are.
const bytesRecorded = time.Minute

// GatewayPoll takes in what a gateway says, and says who may reach what and what is to end.
func (s *Service) GatewayPoll(ctx context.Context, who muster.Actor, q wire.GatewayPoll) (wire.GatewayOrders, error) {
	out := wire.GatewayOrders{Kill: []wire.GatewayKill{}}
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(q.HostKey))
	if err != nil || who.Gateway == "" {
		return out, muster.Errorf(muster.EInvalid, "host_key is not one public SSH key").Because(muster.ReasonBadSSHKey).WithHint("send one line of the form 'ssh-ed25519 AAAA...'")
	}
	var hosts []string
	if err := s.Store.View(ctx, muster.System(), func(tx *store.Tx) (err error) {
		hosts, err = gatewayNames(tx, who.Gateway)
		return err
	}); err != nil {
		return out, err
	}
	d, err := s.directory.now(ctx, s)
	if err != nil {
		return out, err
	}
	if out.Version = d.version; out.Version != q.Have {
		out.Directory = &d.contents
	}
	if s.Hosts.PublicKey() != nil && len(hosts) > 0 {
		cert, err := s.Hosts.SignHost(key, hosts, gatewayCertificateLife)
		if err != nil {
			return out, err
		}
		out.Certificate = pki.Line(cert)
	}
	now := s.Clock.Now()
	s.processes.mu.Lock()
	p := s.processes.process(who.Gateway)
	p.seen, p.address, p.hostKey = now, q.Address, pki.Line(key)
	p.live = make(map[muster.GatewaySessionID]muster.GatewaySession, len(q.Sessions))
	var bytes []muster.GatewaySession
	for _, x := range q.Sessions {
		p.live[x.Session] = muster.GatewaySession{ID: x.Session, Received: x.Received, Sent: x.Sent}
		bytes = append(bytes, p.live[x.Session])
	}
	var lost []muster.GatewaySessionID
	for id, k := range p.kill {
		out.Kill = append(out.Kill, wire.GatewayKill{Session: id, Text: k.text})
		if k.said.IsZero() {
			k.said = now
			p.kill[id] = k
		}
		if _, open := p.live[id]; !open && now.Sub(k.said) >= endNotSaid {
			lost = append(lost, id) // its record was lost there
			delete(p.kill, id)
		}
	}
	due := now.Sub(p.noted) >= bytesRecorded && len(q.Sessions) > 0
	if due {
		p.noted = now
	}
	s.processes.mu.Unlock()
	if len(lost) > 0 {
		if err := s.Store.Update(ctx, muster.System(), func(tx *store.Tx) error { return s.endLost(tx, lost, "its gateway knows nothing of it any more") }); err != nil {
			return out, err
		}
	}
	if due {
		return out, s.GatewayBytes(ctx, bytes)
	}
	return out, nil
}

// endLost closes the records of sessions whose gateway will not.
func (s *Service) endLost(tx *store.Tx, list []muster.GatewaySessionID, text string) error {
	for _, id := range list {
		x, err := tx.GatewaySession(id)
		if err != nil {
			continue // too old to be kept
		}
		x.Ended, x.End, x.Text = s.Clock.Now(), muster.GatewayEndLost, text
		if err := tx.AsSystem().EndGatewaySession(x); err != nil {
			return err
		}
	}
	return nil
}

// gatewayCertificateLife is that of a gateway's host certificate, which comes out the same for a tenth
// of it.
const gatewayCertificateLife = 20 * 24 * time.Hour

// gatewayNames are the host names of one gateway.
func gatewayNames(tx *store.Tx, name string) ([]string, error) {
	gateways, err := tx.Gateways()
	for _, g := range gateways {
		if g.Name == name {
			return g.Hosts, err
		}
	}
	return nil, err
}

func (s *Service) gatewayCluster(tx *store.Tx, c muster.Cluster) (wire.GatewayCluster, error) {
	out := wire.GatewayCluster{ID: c.ID, Name: c.Name, Project: c.Project, Users: c.Spec.Users, Root: s.userRoot(c), Nodes: []wire.GatewayNode{},
		Kept: c.Phase == muster.ClusterReady || c.Phase == muster.ClusterPausing}
	if c.Phase != muster.ClusterReady {
		late := muster.Errorf(muster.EConflict, "cluster %s is %s", c.Name, c.Phase).Because(muster.ReasonWrongPhase)
		out.Refusal = sentError(s.notYet(tx, string(c.ID), late))
		return out, nil
	}
	for _, d := range muster.Doors() {
		if err := s.doorOpen(tx, c, d); muster.ReasonOf(err) == muster.ReasonDoorClosed {
			if out.Closed == nil {
				out.Closed = map[muster.Door]*muster.Error{}
			}
			out.Closed[d] = sentError(err)
		} else if err != nil {
			return out, err
		}
	}
	nodes, err := tx.Nodes(c.ID)
	if err != nil {
		return out, err
	}
	for _, n := range nodes {
		if n.Phase == muster.NodeGone {
			continue
		}
		one := wire.GatewayNode{Name: n.Name, Head: n.Head}
		if m, err := filler(tx, c, n); err == nil && n.Phase != muster.NodeAssigned {
			at := n.Management
			if !at.IsValid() {
				at = m.Facts.Management
			}
			if at.IsValid() {
				one.Address = net.JoinHostPort(at.String(), fmt.Sprint(sshPort))
			}
		}
		out.Nodes = append(out.Nodes, one)
	}
	return out, nil
}

// sentError is an error as it is sent: what is, and what to do.
func sentError(err error) *muster.Error {
	text, hint := muster.Explain(err)
	return muster.Errorf(muster.CodeOf(err), "%s", text).Because(muster.ReasonOf(err)).WithHint("%s", hint)
}

// GatewayRecords takes in records of a gateway. Those that are there already count once.
func (s *Service) GatewayRecords(ctx context.Context, who muster.Actor, r wire.GatewayRecords) error {
	err := s.Store.Update(ctx, muster.System(), func(tx *store.Tx) error {
		for _, x := range r.Begun {
			switch old, err := tx.GatewaySession(x.ID); {
			case err == nil && old.Gateway != who.Gateway:
				return muster.Errorf(muster.EForbidden, "session %.64s is not of this gateway", x.ID).Because(muster.ReasonNoAccess).WithHint("each gateway has records of its own")
			case err == nil:
				continue
			case muster.CodeOf(err) != muster.ENotFound:
				return err
			}
			x.Gateway = who.Gateway
			if err := tx.BeginGatewaySession(x); err != nil {
				return err
			}
		}
		for _, x := range r.Ended {
			if old, err := tx.GatewaySession(x.ID); err != nil || old.Gateway != who.Gateway {
				continue // too old to be kept, or not its own
			}
			if err := tx.EndGatewaySession(x); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.processes.mu.Lock()
	defer s.processes.mu.Unlock()
	for _, x := range r.Ended {
		delete(s.processes.process(who.Gateway).kill, x.ID)
	}
	return nil
}

// GatewaySignFor certifies a key of a gateway for one session at the plain door, for a user who may
// come by it.
func (s *Service) GatewaySignFor(ctx context.Context, who muster.Actor, r wire.GatewaySign) (out wire.GatewaySigned, _ error) {
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(r.PublicKey))
	if err != nil {
		return out, muster.Errorf(muster.EInvalid, "public_key is not one public SSH key").Because(muster.ReasonBadSSHKey).WithHint("send one line of the form 'ssh-ed25519 AAAA...'")
	}
	way, err := s.GatewayEnter(ctx, r.User, muster.DoorPlain, muster.DoorTarget{Cluster: string(r.Cluster), Node: r.Node})
	if err != nil {
		return out, err
	}
	cert, host, err := s.GatewaySign(ctx, r.User, way, key)
	if err != nil {
		return out, err
	}
	s.Log.Info("certificate for a session at a gateway", "gateway", who.Gateway, "user", r.User, "cluster", way.Cluster, "node", way.Node)
	return wire.GatewaySigned{Certificate: pki.Line(cert), HostKey: pki.Line(host)}, nil
}

// AddGateway registers a gateway that will be a process of its own, and makes its token.
func (s *Service) AddGateway(ctx context.Context, who muster.Actor, r wire.GatewayRequest) (out wire.GatewayProcess, _ error) {
	var problems []muster.Problem
	if !muster.IsUserName(r.Name) {
		problems = append(problems, muster.Problem{Field: "name", Reason: muster.ReasonBadValue, Message: fmt.Sprintf("%.64q is not a name for a gateway", r.Name), Hint: "use lower-case letters, digits and hyphens"})
	}
	for i, h := range r.Hosts {
		if h == "" || len(h) > 253 || strings.ContainsFunc(h, func(c rune) bool { return c <= ' ' || c > '~' || strings.ContainsRune(",*?!@|#[]", c) }) {
			problems = append(problems, muster.Problem{Field: fmt.Sprintf("hosts[%d]", i), Reason: muster.ReasonBadValue, Message: fmt.Sprintf("%.64q is not a host name", h), Hint: "write it like gw.example.org"})
		}
	}
	if len(problems) > 0 {
		return out, muster.Errorf(muster.EInvalid, "the gateway cannot be registered").Because(muster.ReasonHasProblems).Listing(problems)
	}
	secret, hash := pki.NewToken()
	g := store.GatewayProcess{Name: r.Name, Hash: hash, Hosts: append([]string{}, r.Hosts...), Created: s.Clock.Now()}
	if err := s.Store.Update(ctx, who, func(tx *store.Tx) error {
		if err := tx.PutGateway(g); err != nil {
			return err
		}
		return tx.AsSystem().Note(muster.AuditToken, g.Name, "", who.Name+" registers gateway "+g.Name)
	}); err != nil {
		return out, err
	}
	return wire.GatewayProcess{Name: g.Name, Hosts: g.Hosts, Created: g.Created, Token: secret}, nil
}

// RemoveGateway takes a gateway's token away: it learns nothing more, and forgets what it knows.
func (s *Service) RemoveGateway(ctx context.Context, who muster.Actor, name string) error {
	err := s.Store.Update(ctx, who, func(tx *store.Tx) error {
		if err := tx.RemoveGateway(name); err != nil {
			return err
		}
		open, err := tx.AsSystem().GatewaySessions(store.GatewayFilter{Open: true})
		if err != nil {
			return err
		}
		var its []muster.GatewaySessionID
		for _, x := range open {
			if x.Gateway == name {
				its = append(its, x.ID)
			}
		}
		if err := s.endLost(tx.AsSystem(), its, "its gateway was removed; it lasted at least until its bytes were last recorded"); err != nil {
			return err
		}
		return tx.AsSystem().Note(muster.AuditToken, name, "", who.Name+" removes gateway "+name)
	})
	if err == nil {
		s.processes.mu.Lock()
		delete(s.processes.of, name)
		s.processes.mu.Unlock()
	}
	return err
}

// GatewayProcesses lists the gateways that are processes of their own, by name.
func (s *Service) GatewayProcesses(ctx context.Context, who muster.Actor, p wire.Page) (wire.GatewayProcessList, error) {
	out := wire.GatewayProcessList{Gateways: []wire.GatewayProcess{}}
	return out, s.Store.View(ctx, who, func(tx *store.Tx) error {
		list, err := tx.Gateways()
		if err != nil {
			return err
		}
		list = slices.DeleteFunc(list, func(g store.GatewayProcess) bool { return g.Name <= p.After })
		list, more := partOf(list[:min(len(list), p.Size()+1)], p)
		for _, g := range list {
			out.Gateways = append(out.Gateways, s.knownProcess(g))
		}
		out.More, err = nextAfter(list, more, func(g store.GatewayProcess) (string, error) { return g.Name, nil })
		return err
	})
}

func (s *Service) knownProcess(g store.GatewayProcess) wire.GatewayProcess {
	s.processes.mu.Lock()
	defer s.processes.mu.Unlock()
	out := wire.GatewayProcess{Name: g.Name, Hosts: g.Hosts, Created: g.Created}
	if p := s.processes.of[g.Name]; p != nil {
		out.Seen, out.Address, out.HostKey, out.Sessions = p.seen, p.address, p.hostKey, len(p.live)
	}
	return out
}

// liveSessions are the open sessions of all gateways, with the bytes of about this moment.
func (s *Service) liveSessions() map[muster.GatewaySessionID]muster.GatewaySession {
	live := map[muster.GatewaySessionID]muster.GatewaySession{}
	if s.Gateway != nil {
		maps.Copy(live, s.Gateway.Sessions())
	}
	s.processes.mu.Lock()
	defer s.processes.mu.Unlock()
	for _, p := range s.processes.of {
		maps.Copy(live, p.live)
	}
	return live
}

// endAt ends a session where it is. False: it is not open.
func (s *Service) endAt(x muster.GatewaySession, text string) bool {
	if x.Gateway == "" {
		return s.Gateway != nil && s.Gateway.Kill(x.ID, text)
	}
	s.processes.mu.Lock()
	defer s.processes.mu.Unlock()
	s.processes.process(x.Gateway).kill[x.ID] = killing{text: text} // it asks within seconds
	return true
}
