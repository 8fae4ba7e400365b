package control

import (
	"context"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
	"golang.org/x/crypto/ssh"
)

// accessTime is how long a certificate for logging in is good. A connection
// that was made with it goes on.
const accessTime = 5 * time.Minute

const sshPort = 22

// Access signs an ephemeral key for one user of a cluster.
func (s *Service) Access(ctx context.Context, who muster.Actor, ref string, r wire.AccessRequest) (wire.Access, error) {
	out, _, _, err := s.access(ctx, who, ref, r, "permit-pty", "permit-agent-forwarding", "permit-port-forwarding", "permit-X11-forwarding", "permit-user-rc")
	return out, err
}

// access signs a key with these rights; it returns the certificate and the node's host key besides.
func (s *Service) access(ctx context.Context, who muster.Actor, ref string, r wire.AccessRequest, rights ...string) (wire.Access, *ssh.Certificate, ssh.PublicKey, error) {
	refuse := func(err error) (wire.Access, *ssh.Certificate, ssh.PublicKey, error) {
		return wire.Access{}, nil, nil, err
	}
	key, _, options, rest, err := ssh.ParseAuthorizedKey([]byte(r.PublicKey))
	if err != nil || len(options) > 0 || len(strings.TrimSpace(string(rest))) > 0 {
		return refuse(muster.Errorf(muster.EInvalid, "public_key is not one public SSH key").Because(muster.ReasonBadSSHKey).
			WithHint("send one line of the form 'ssh-ed25519 AAAA...'"))
	}
	if err := pki.CheckUserKey(key); err != nil {
		return refuse(err)
	}
	var out wire.Access
	var userCA pki.SSHAuthority
	var host ssh.PublicKey
	var id muster.ClusterID
	var entered muster.Cluster
	err = s.Store.View(ctx, who, func(tx *store.Tx) error {
		c, node, err := s.reach(tx, ref, r.Node)
		if err != nil {
			return err
		}
		out.Cluster, out.Node, id, entered = c.ID, node.Name, c.ID, c
		if out.User, err = s.loginName(who, c, r.User); err != nil {
			return err
		}
		if host, err = hostKeyOf(tx, c.ID, node.Name); err != nil {
			return err
		}
		userCA, err = authority(tx, c.ID, muster.SecretUserCA)
		return err
	})
	if err != nil {
		return refuse(err)
	}
	s.enteredSeat(ctx, who, entered)
	cert, err := userCA.WithClock(s.Clock).SignUser(key, "muster:"+who.Name+":"+string(id), []string{out.User + "@" + string(id)}, accessTime, rights...)
	if err != nil {
		return refuse(err)
	}
	out.Certificate = strings.TrimSpace(string(ssh.MarshalAuthorizedKey(cert)))
	out.KnownHosts = out.Node + " " + pki.Line(host)
	out.Expires = s.Clock.Now().Add(accessTime)
	return out, cert, host, nil
}

// hostKeyOf is the public key of a node's SSH server.
func hostKeyOf(tx *store.Tx, id muster.ClusterID, node string) (ssh.PublicKey, error) {
	raw, err := tx.AsSystem().Secret(id, muster.SecretHostKey(node))
	if err != nil {
		return nil, err
	}
	key, err := ssh.ParsePrivateKey(raw)
	if err != nil { // without the cause: it might quote the key
		return nil, muster.Errorf(muster.ECorrupt, "the host key of node %s is damaged", node).Because(muster.ReasonKeysDamaged).
			WithHint("restore the store from a copy, or delete the cluster and make another")
	}
	return key.PublicKey(), nil
}

func authority(tx *store.Tx, id muster.ClusterID, name string) (pki.SSHAuthority, error) {
	raw, err := tx.AsSystem().Secret(id, name)
	if err != nil {
		return pki.SSHAuthority{}, err
	}
	return pki.ParseSSHAuthority(raw)
}

// reach finds the node that somebody wants to log in to, and refuses while
// the cluster is not handed over. Administrators may look in earlier.
func (s *Service) reach(tx *store.Tx, ref, name string) (muster.Cluster, muster.Node, error) {
	who := tx.Actor()
	c, err := tx.FindCluster(ref)
	if err != nil {
		return c, muster.Node{}, err
	}
	if !who.Admin && !slices.Contains(c.Spec.Users, who.Name) {
		return c, muster.Node{}, muster.Errorf(muster.EForbidden, "you are not a user of cluster %s", c.Name).Because(muster.ReasonNoAccess).
			WithHint("its users are %s", strings.Join(c.Spec.Users, ", "))
	}
	late := muster.Errorf(muster.EConflict, "cluster %s is %s", c.Name, c.Phase).Because(muster.ReasonWrongPhase)
	switch c.Phase {
	case muster.ClusterReady:
	case muster.ClusterBuilding, muster.ClusterValidating:
		if !who.Admin {
			return c, muster.Node{}, late.WithHint("wait until it is ready: muster events -f %s", c.ID)
		}
	case muster.ClusterPaused:
		return c, muster.Node{}, late.WithHint("it gave its machines back: 'muster resume %s' has it go on", c.ID)
	case muster.ClusterQueued, muster.ClusterReserved:
		return c, muster.Node{}, late.WithHint("it has no machines yet: muster events -f %s", c.ID)
	case muster.ClusterFrozen:
		return c, muster.Node{}, late.WithHint("its machines stand still, or are off: 'muster resume %s' lets them go on", c.ID)
	default:
		return c, muster.Node{}, late.WithHint("see 'muster show %s'", c.ID)
	}
	nodes, err := tx.Nodes(c.ID)
	if err != nil {
		return c, muster.Node{}, err
	}
	node, err := pickNode(c, nodes, name)
	if err != nil {
		return c, node, err
	}
	if _, err := filler(tx, c, node); err != nil {
		return c, node, err
	}
	if node.Phase == muster.NodeAssigned {
		return c, node, muster.Errorf(muster.EConflict, "node %s of %s is %s", node.Name, c.Name, node.Phase).Because(muster.ReasonWrongPhase).
			WithHint("see 'muster show %s'", stillNamed(c))
	}
	return c, node, nil
}

// pickNode finds a node by name; "" and "head" mean the one with the head.
func pickNode(c muster.Cluster, nodes []muster.Node, name string) (muster.Node, error) {
	have := make([]string, 0, len(nodes))
	for _, n := range nodes {
		if n.Name == name || (n.Head && (name == "" || name == "head")) {
			return n, nil
		}
		have = append(have, n.Name)
	}
	e := muster.Errorf(muster.ENotFound, "cluster %s has no node %q", c.Name, name).Because(muster.ReasonNoSuchNode)
	if hint := didYouMean(name, have); hint != "" {
		return muster.Node{}, e.WithHint("%s", hint)
	}
	return muster.Node{}, e.WithHint("see 'muster show %s'", stillNamed(c))
}

// stillNamed is what a cluster answers to: its name, and only its ID once it
// is deleted.
func stillNamed(c muster.Cluster) string {
	if c.Phase == muster.ClusterDeleted {
		return string(c.ID)
	}
	return c.Name
}

// loginName settles as whom somebody logs in. Users may only be themselves, or
// root where the image makes its users root.
func (s *Service) loginName(who muster.Actor, c muster.Cluster, name string) (string, error) {
	userRoot := s.userRoot(c)
	if name == "" {
		switch {
		case userRoot:
			return "root", nil
		case slices.Contains(c.Spec.Users, who.Name):
			return who.Name, nil
		case len(c.Spec.Users) > 0 && who.Admin:
			return c.Spec.Users[0], nil
		}
		name = who.Name
	}
	switch {
	case name == "root" && (userRoot || who.Admin):
		return name, nil
	case !who.Admin && name != who.Name:
		return "", muster.Errorf(muster.EForbidden, "you may log in as yourself only, not as %s", name).Because(muster.ReasonYourselfOnly).
			WithHint("leave --user away, or say --user %s", who.Name)
	case !slices.Contains(c.Spec.Users, name):
		e := muster.Errorf(muster.ENotFound, "cluster %s has no user %q", c.Name, name).Because(muster.ReasonNoSuchUser)
		return "", e.WithHint("%s", didYouMean(name, c.Spec.Users))
	}
	return name, nil
}

// userRoot reports whether the users of a cluster are root on it.
func (s *Service) userRoot(c muster.Cluster) bool {
	ref := c.Spec.Image
	if c.Image != "" {
		ref = string(c.Image)
	}
	img, err := s.Config.Images.Resolve(ref)
	return err == nil && img.UserRoot
}

// MayUse is the cluster, when the actor may see it, and have a root shell on its nodes
// where that is asked. Returns ENotFound or EForbidden.
func (s *Service) MayUse(ctx context.Context, who muster.Actor, ref string, shell bool) (id muster.ClusterID, _ error) {
	return id, s.Store.View(ctx, who, func(tx *store.Tx) error {
		c, err := tx.FindCluster(ref)
		if err != nil {
			return err
		}
		id = c.ID
		if shell {
			return s.mayShell(who, c)
		}
		return nil
	})
}

// Tunnel connects to the SSH port of a node.
func (s *Service) Tunnel(ctx context.Context, who muster.Actor, ref, name string) (net.Conn, error) {
	var id muster.ClusterID
	var machine muster.Machine
	var node muster.Node
	err := s.Store.View(ctx, who, func(tx *store.Tx) error {
		var err error
		var c muster.Cluster
		if c, node, err = s.reach(tx, ref, name); err != nil {
			return err
		}
		id = c.ID
		machine, err = filler(tx, c, node)
		return err
	})
	if err != nil {
		return nil, err
	}
	dial, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	conn, err := s.Dialer.Dial(dial, machine, sshPort)
	if err != nil && node.Phase != muster.NodeReady {
		return nil, muster.Errorf(muster.EUnavailable, "node %s is %s, and nobody can log in yet", node.Name, node.Phase).Because(muster.ReasonNodeUnreachable).
			WithHint("'muster show %s' says how far it is, and when it is likely to be ready", id).Wrap(err)
	}
	if err != nil {
		return nil, muster.Errorf(muster.EUnavailable, "node %s does not answer on its SSH port", node.Name).Because(muster.ReasonNodeUnreachable).
			WithHint("see 'muster show %s' and 'muster logs %s %s'", id, id, node.Name).Wrap(err)
	}
	return conn, nil
}
