package nodeconf

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// Images finds images.
type Images interface {
	// Resolve finds an image by name, ID or the beginning of an ID.
	Resolve(ref string) (*muster.Image, error)
}

// Volumes are what nodes mount.
type Volumes interface {
	// Mounts are what the agents of a cluster mount themselves: some on all nodes, some
	// on the head only.
	Mounts(ctx context.Context, c muster.Cluster) (all, head []wire.Mount, err error)
}

// Config of a Maker. Store, Images, Volumes and Duration are required.
type Config struct {
	Store   *store.DB
	Images  Images
	Volumes Volumes
	// Providers are what the machines of each provider can do.
	Providers muster.Providers
	// Proxy is the URL at which a machine finds the way out; "" where there is none.
	// Nil: nowhere.
	Proxy func(m muster.Machine) string
	// Licences are the licence servers of a project, and Gateway the address at which a
	// machine finds them; "" where it does not. Nil: there are none.
	Licences func(tx *store.Tx, project string) ([]muster.LicenceServer, error)
	Gateway  func(m muster.Machine) string
	// Places say what machines stand in, the outermost first; known: something is known
	// beyond racks. Nil: nothing is known.
	Places func(tx *store.Tx, machines []muster.Machine) (places func(muster.MachineID) []string, known bool, err error)
	// TimeZone is the site's; "": nodes have that of their image.
	TimeZone string
	// Time are the NTP servers of machines with a clock of their own, by provider.
	Time func(provider string) []string
	// Hosts is the site's authority for host keys of doors. The zero value: nodes have a certificate
	// of their cluster alone.
	Hosts pki.SSHAuthority
	// Clock is the system's unless another is named.
	Clock muster.Clock
	// Duration writes a time for people, as requests have it.
	Duration func(time.Duration) string
}

// Maker makes the configurations of nodes from the records. What the nodes of a cluster
// share is made once and kept, until Drop says that a record has changed. It is safe for
// concurrent use.
type Maker struct {
	c    Config
	kept keptConfigs
}

// NewMaker makes a Maker.
func NewMaker(c Config) *Maker {
	if c.Proxy == nil {
		c.Proxy = func(muster.Machine) string { return "" }
	}
	if c.Licences == nil {
		c.Licences = func(*store.Tx, string) ([]muster.LicenceServer, error) { return nil, nil }
	}
	if c.Gateway == nil {
		c.Gateway = func(muster.Machine) string { return "" }
	}
	if c.Places == nil {
		c.Places = func(*store.Tx, []muster.Machine) (func(muster.MachineID) []string, bool, error) {
			return func(muster.MachineID) []string { return nil }, false, nil
		}
	}
	if c.Clock == nil {
		c.Clock = muster.SystemClock{}
	}
	if c.Time == nil {
		c.Time = func(string) []string { return nil }
	}
	return &Maker{c: c}
}

// hostCertificateLife is longer than any cluster should live: the authority
// that signs is the cluster's own and dies with it.
const hostCertificateLife = 5 * 365 * 24 * time.Hour

// DoorCertificateLife is how long a certificate of the site's authority is good. After a tenth of it
// nodes get another one.
const DoorCertificateLife = 20 * 24 * time.Hour

const renewal = DoorCertificateLife / 10

// certificatesOf numbers the certificates of a cluster's nodes that are due at a time, and says until
// when. Clusters do not all change at once.
func certificatesOf(id muster.ClusterID, now time.Time) (number int64, until time.Time) {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id))
	shift := time.Duration(h.Sum64() % uint64(renewal))
	begin := now.Add(shift).Truncate(renewal)
	return begin.Unix() / int64(renewal/time.Second), begin.Add(renewal - shift)
}

// Node builds the configuration of one node from the records: what all
// nodes share is made once for each change, the rest is one host key.
func (k *Maker) Node(ctx context.Context, id muster.ClusterID, node string) (wire.NodeConfig, error) {
	shared, err := k.kept.of(ctx, id, k.c.Clock.Now, k.share)
	if err != nil {
		return wire.NodeConfig{}, err
	}
	var (
		n   muster.Node
		key []byte
	)
	err = k.c.Store.View(ctx, muster.System(), func(tx *store.Tx) (err error) {
		if n, err = tx.Node(id, node); err != nil {
			return err
		}
		key, err = tx.Secret(id, muster.SecretHostKey(node))
		return err
	})
	if err != nil {
		return wire.NodeConfig{}, err
	}
	host, err := ssh.ParsePrivateKey(key)
	if err != nil {
		return wire.NodeConfig{}, fmt.Errorf("host key of %s/%s: %w", id, node, err)
	}
	c, err := shared.Node(n, string(key))
	if err != nil {
		return wire.NodeConfig{}, err
	}
	c.Generation = shared.generation
	return c, k.certify(&c, shared.hostCA.WithClock(k.c.Clock), n, host.PublicKey())
}

// certify signs the host keys of a node: for its cluster's nodes by the cluster's authority, under
// the names that only mean something there, and for users by the site's.
func (k *Maker) certify(c *wire.NodeConfig, cluster pki.SSHAuthority, n muster.Node, host ssh.PublicKey) error {
	inside := []string{n.Name, n.Name + "." + c.Domain, n.Address.String()}
	doors := muster.DoorNames(c.ClusterName, c.Project, c.Cluster, n)
	cert, err := cluster.SignHost(host, append(slices.Clone(inside), doors...), hostCertificateLife)
	if err != nil {
		return err
	}
	c.SSH.HostCertificate = pki.Line(cert)
	if k.c.Hosts.PublicKey() == nil {
		return nil
	}
	if cert, err = k.c.Hosts.SignHost(host, doors, DoorCertificateLife); err != nil {
		return err
	}
	c.SSH.DoorCertificate = pki.Line(cert)
	var second ssh.PublicKey
	if c.SSH.InsideKey, second, err = pki.InsideKey([]byte(c.SSH.HostKey)); err != nil {
		return fmt.Errorf("host key of %s/%s: %w", c.Cluster, n.Name, err)
	}
	if cert, err = cluster.SignHost(second, inside, hostCertificateLife); err != nil {
		return err
	}
	c.SSH.InsideCertificate = pki.Line(cert)
	return nil
}

// Generation is that of the newest configuration of a cluster's nodes.
func (k *Maker) Generation(ctx context.Context, id muster.ClusterID) (int64, error) {
	c, err := k.kept.of(ctx, id, k.c.Clock.Now, k.share)
	if err != nil {
		return 0, err
	}
	return c.generation, nil
}

// Drop forgets what the nodes of a cluster share: a record that it is made from has changed.
func (k *Maker) Drop(id muster.ClusterID) { k.kept.drop(id) }

// DropAll forgets everything.
func (k *Maker) DropAll() { k.kept.dropAll() }
