package gatewayproc

import (
	"slices"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/document"
	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/wire"
)

// good is how long a directory lives that cannot be asked for again.
const good = 15 * time.Minute

// directory is who may reach what, by the word of the server.
type directory struct {
	Got      time.Time             `json:"got"`
	Version  string                `json:"version"`
	Contents wire.GatewayDirectory `json:"contents"`

	keys     map[string][]muster.SSHKey       // by user; nothing of these two is kept
	clusters map[string][]wire.GatewayCluster // by name and by ID
}

const directoryDoc document.Kind[directory] = "gateway-directory/1"

// index makes a directory ready to be asked.
func (d *directory) index() {
	d.keys, d.clusters = map[string][]muster.SSHKey{}, map[string][]wire.GatewayCluster{}
	for _, u := range d.Contents.Users {
		for _, k := range u.Keys {
			d.keys[u.Name] = append(d.keys[u.Name], keyOf(k))
		}
	}
	for _, c := range d.Contents.Clusters {
		d.clusters[c.Name] = append(d.clusters[c.Name], c)
		d.clusters[string(c.ID)] = append(d.clusters[string(c.ID)], c)
	}
}

// keyOf is a key as it is on record.
func keyOf(k wire.GatewayKey) muster.SSHKey {
	own, _ := pki.UserKey(k.Certificate) // the zero value of a key
	own.Fingerprint, own.Expires, own.Authority, own.Principals = k.Fingerprint, k.Expires, k.Authority, k.Principals
	return own
}

// speaks reports whether a key on record lets a user in still.
func (d *directory) speaks(user, fingerprint string, now time.Time) error {
	return pki.LetsIn(d.keys[user], user, fingerprint, now)
}

// find finds the cluster that a user means.
func (d *directory) find(user string, t muster.DoorTarget) (wire.GatewayCluster, error) {
	list := slices.DeleteFunc(slices.Clone(d.clusters[t.Cluster]), func(c wire.GatewayCluster) bool {
		return t.Project != "" && c.Project != t.Project
	})
	mine := slices.DeleteFunc(slices.Clone(list), func(c wire.GatewayCluster) bool { return !slices.Contains(c.Users, user) })
	switch len(mine) {
	case 1:
		return mine[0], nil
	case 0: // whether others have one of that name is not for everybody
		return wire.GatewayCluster{}, muster.Errorf(muster.ENotFound, "you have no cluster %q", t.Cluster).Because(muster.ReasonNoSuchCluster).WithHint("'muster list' shows yours")
	}
	var which []string
	for _, c := range mine {
		which = append(which, c.Name+"+"+c.Project)
	}
	return wire.GatewayCluster{}, muster.Errorf(muster.EConflict, "%d of your clusters are named %s", len(mine), t.Cluster).Because(muster.ReasonAmbiguous).WithHint("name the project: %s", strings.Join(which, ", "))
}

// enter finds where a target leads for a user, and the address of the node there.
func (d *directory) enter(user string, door muster.Door, t muster.DoorTarget) (w muster.DoorWay, address string, _ error) {
	c, err := d.find(user, t)
	if err != nil {
		return w, "", err
	}
	if c.Refusal != nil {
		return w, "", c.Refusal
	}
	if closed := c.Closed[door]; closed != nil {
		return w, "", closed
	}
	i := slices.IndexFunc(c.Nodes, func(n wire.GatewayNode) bool {
		return n.Name == t.Node || n.Head && (t.Node == "" || t.Node == "head")
	})
	if i < 0 {
		return w, "", muster.Errorf(muster.ENotFound, "cluster %s has no node %q", c.Name, t.Node).Because(muster.ReasonNoSuchNode).WithHint("see 'muster show %s'", c.Name)
	}
	n := c.Nodes[i]
	if n.Address == "" {
		return w, "", muster.Errorf(muster.EConflict, "node %s of %s has no machine now", n.Name, c.Name).Because(muster.ReasonNotReady).WithHint("see 'muster show %s'", c.Name)
	}
	w = muster.DoorWay{Cluster: c.ID, ClusterName: c.Name, Project: c.Project, Node: n.Name, Login: user}
	if c.Root {
		w.Login = "root"
	}
	return w, n.Address, nil
}

// holds reports why a claim does not hold any more; nil: it does.
func (d *directory) holds(claim muster.DoorClaim, now time.Time) error {
	if err := d.speaks(claim.User, claim.Fingerprint, now); err != nil || claim.Cluster == "" {
		return err
	}
	c, err := d.find(claim.User, muster.DoorTarget{Cluster: string(claim.Cluster)})
	switch {
	case err != nil:
		return muster.Errorf(muster.EForbidden, "you are not a user of the cluster any more, or it is gone").Because(muster.ReasonNoAccess).WithHint("see 'muster list'")
	case !c.Kept && c.Refusal != nil:
		return c.Refusal
	case c.Closed[claim.Door] != nil:
		return c.Closed[claim.Door]
	}
	return nil
}
