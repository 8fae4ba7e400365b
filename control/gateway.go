package control

import (
	"context"
	"net"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
	"golang.org/x/crypto/ssh"
)

// Gateway is the gateway of this server, as far as it is not on record.
type Gateway interface {
	// Sessions are those that are open, with the bytes of this moment.
	Sessions() map[muster.GatewaySessionID]muster.GatewaySession
	// Kill ends a session; false: it is not open.
	Kill(id muster.GatewaySessionID, text string) bool
	// Ticket lets the next connection of a user through the straight door.
	Ticket(ctx context.Context, r muster.DoorTicketRequest) (muster.DoorTicket, error)
	// Address is where it listens, and HostKey its own public key in one line.
	Address() string
	HostKey() string
	// Names are those of its host certificate.
	Names() []string
}

// person is a user as an actor at the gateway: nobody is an administrator there, so that a key
// reaches the clusters of its user and no others. ENotFound: there is no such user.
func person(tx *store.Tx, name string) (muster.User, muster.Actor, error) {
	u, err := tx.AsSystem().User(name)
	return u, muster.Actor{Name: u.Name, Projects: u.Projects}, err
}

// GatewayKey finds by which key on record a user comes who offers one, or a certificate; EUnauth, without telling
// why not, where there is none.
func (s *Service) GatewayKey(ctx context.Context, user string, offered ssh.PublicKey) (by muster.DoorKey, _ error) {
	return by, s.Store.View(ctx, muster.System(), func(tx *store.Tx) error {
		keys, err := doorKeys(tx, user)
		if err != nil {
			return err
		}
		var ok bool
		if by, ok = pki.Admit(keys, offered, s.Clock.Now()); !ok {
			return pki.NoUserKey(user)
		}
		return nil
	})
}

// doorKeys are the keys of a user, who need not exist.
func doorKeys(tx *store.Tx, user string) ([]muster.SSHKey, error) {
	u, _, err := person(tx, user)
	if err != nil && muster.CodeOf(err) != muster.ENotFound {
		return nil, err
	}
	u.Name = user
	return keysOf(tx, u)
}

// speaks reports whether a key on record lets anybody in still.
func (s *Service) speaks(tx *store.Tx, user, fingerprint string) error {
	keys, err := doorKeys(tx, user)
	if err != nil {
		return err
	}
	return pki.LetsIn(keys, user, fingerprint, s.Clock.Now())
}

// GatewayEnter finds where a target leads for a user at a door, or says why it leads nowhere now.
func (s *Service) GatewayEnter(ctx context.Context, user string, d muster.Door, t muster.DoorTarget) (w muster.DoorWay, _ error) {
	who, err := s.gatewayActor(ctx, user)
	if err != nil {
		return w, err
	}
	return w, s.Store.View(ctx, who, func(tx *store.Tx) error {
		ref, err := s.doorCluster(tx, t)
		if err != nil {
			return err
		}
		c, node, err := s.reach(tx, ref, t.Node)
		if muster.ReasonOf(err) == muster.ReasonWrongPhase {
			return s.notYet(tx, ref, err)
		}
		if err != nil {
			return err
		}
		if err := s.doorOpen(tx, c, d); err != nil {
			return err
		}
		w = muster.DoorWay{Cluster: c.ID, ClusterName: c.Name, Project: c.Project, Node: node.Name}
		w.Login, err = s.loginName(who, c, "")
		return err
	})
}

func (s *Service) gatewayActor(ctx context.Context, user string) (who muster.Actor, _ error) {
	return who, s.Store.View(ctx, muster.System(), func(tx *store.Tx) (err error) {
		_, who, err = person(tx, user)
		return err
	})
}

// doorCluster is the reference of the cluster that a target names. Of several with one name it is
// the one whose user the actor is.
func (s *Service) doorCluster(tx *store.Tx, t muster.DoorTarget) (string, error) {
	if t.Project != "" {
		return t.Project + "/" + t.Cluster, nil
	}
	_, err := tx.FindCluster(t.Cluster)
	if muster.ReasonOf(err) != muster.ReasonAmbiguous {
		return t.Cluster, nil // what it is, reach says
	}
	list, err := tx.Clusters(store.ClusterFilter{Living: true})
	if err != nil {
		return "", err
	}
	list = slices.DeleteFunc(list, func(c muster.Cluster) bool {
		return c.Name != t.Cluster || !slices.Contains(c.Spec.Users, tx.Actor().Name)
	})
	switch len(list) {
	case 0:
		return t.Cluster, nil
	case 1:
		return string(list[0].ID), nil
	}
	var which []string
	for _, c := range list {
		which = append(which, c.Name+"+"+c.Project)
	}
	return "", muster.Errorf(muster.EConflict, "%d of your clusters are named %s", len(list), t.Cluster).Because(muster.ReasonAmbiguous).WithHint("name the project: %s", strings.Join(which, ", "))
}

// notYet says of a cluster that cannot be entered how it stands, and until when.
func (s *Service) notYet(tx *store.Tx, ref string, err error) error {
	c, findErr := tx.FindCluster(ref)
	if findErr != nil {
		return findErr
	}
	nodes, listErr := tx.Nodes(c.ID)
	if listErr != nil {
		return listErr
	}
	view, viewErr := s.view(tx, c, nodes)
	if viewErr != nil || c.Phase == muster.ClusterReady {
		return err // one of its nodes is not there
	}
	e := muster.Errorf(muster.EConflict, "cluster %s is %s: %s", c.Name, c.Phase, view.StatusText).Because(muster.ReasonWrongPhase)
	switch c.Phase {
	case muster.ClusterPaused, muster.ClusterPausing, muster.ClusterFrozen:
		return e.WithHint("bring it back with 'muster resume %s'", c.Name)
	case muster.ClusterFailed, muster.ClusterDeleting, muster.ClusterDeleted:
		return e.WithHint("see 'muster show %s'", c.ID)
	}
	return e.WithHint("log in again then, or wait with 'muster wait %s'", c.Name)
}

// GatewayDial connects to the SSH port of a node.
func (s *Service) GatewayDial(ctx context.Context, user string, w muster.DoorWay) (net.Conn, error) {
	who, err := s.gatewayActor(ctx, user)
	if err != nil {
		return nil, err
	}
	return s.Tunnel(ctx, who, string(w.Cluster), w.Node)
}

// GatewaySign certifies a key for one session of a user on a node, and says which host key that has. Neither X11 nor an agent can be
// forwarded with it.
func (s *Service) GatewaySign(ctx context.Context, user string, w muster.DoorWay, key ssh.PublicKey) (*ssh.Certificate, ssh.PublicKey, error) {
	who, err := s.gatewayActor(ctx, user)
	if err != nil {
		return nil, nil, err
	}
	_, cert, host, err := s.access(ctx, who, string(w.Cluster), wire.AccessRequest{Node: w.Node, User: w.Login, PublicKey: pki.Line(key)},
		"permit-pty", "permit-port-forwarding", "permit-user-rc")
	return cert, host, err
}

// GatewayRights reports of each claim why it does not hold any more; nil: it does, or the store
// cannot say.
func (s *Service) GatewayRights(ctx context.Context, claims []muster.DoorClaim) []error {
	out := make([]error, len(claims))
	err := s.Store.View(ctx, muster.System(), func(tx *store.Tx) error {
		for i, claim := range claims {
			err := s.claimHolds(tx, claim)
			switch muster.CodeOf(err) {
			case muster.EUnauth, muster.EForbidden, muster.ENotFound, muster.EConflict:
				out[i] = err
			}
		}
		return nil
	})
	if err != nil {
		s.Log.Warn("rights at the gateway could not be looked at", "error", err)
		return make([]error, len(claims))
	}
	return out
}

func (s *Service) claimHolds(tx *store.Tx, claim muster.DoorClaim) error {
	if err := s.holder(tx, claim); err != nil || claim.Cluster == "" {
		return err
	}
	c, err := tx.Cluster(claim.Cluster)
	if err != nil {
		return err
	}
	u, _, err := person(tx, claim.User)
	switch {
	case err != nil:
		return err
	case !slices.Contains(c.Spec.Users, u.Name):
		return muster.Errorf(muster.EForbidden, "you are not a user of cluster %s any more", c.Name).Because(muster.ReasonNoAccess).WithHint("its users are %s", strings.Join(c.Spec.Users, ", "))
	case c.Phase != muster.ClusterReady && c.Phase != muster.ClusterPausing && c.Phase != muster.ClusterFrozen: // they go on with its jobs
		return muster.Errorf(muster.EConflict, "cluster %s is %s", c.Name, c.Phase).Because(muster.ReasonWrongPhase).WithHint("see 'muster show %s'", c.ID)
	}
	return s.doorOpen(tx, c, claim.Door)
}

// holder reports whether what a claim was opened with still speaks for its user.
func (s *Service) holder(tx *store.Tx, claim muster.DoorClaim) error {
	if claim.Token == "" {
		return s.speaks(tx, claim.User, claim.Fingerprint)
	}
	holds, err := tx.AsSystem().TokenHolds(claim.Token, claim.User)
	if err == nil && !holds {
		err = muster.Errorf(muster.EUnauth, "this token does not speak for %.40q any more", claim.User).Because(muster.ReasonBadToken).WithHint("make a new one with 'muster token create'")
	}
	return err
}
