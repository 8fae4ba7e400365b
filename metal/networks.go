package metal

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
	"sync"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/atomicfile"
	"github.com/muster-hpc/muster/internal/document"
	"github.com/muster-hpc/muster/provider"
)

// networks gives each cluster a network of the site's switches, and remembers which.
type networks struct {
	path        string
	first, last int

	mu sync.Mutex
	of map[muster.ClusterID]int
}

// vlans are the networks by cluster, as they are written down.
type vlans struct {
	VLANs map[muster.ClusterID]int `json:"vlans"`
}

const vlansDoc document.Kind[vlans] = "vlans/1"

func openNetworks(path string, between [2]int) (*networks, error) {
	// The last one is for machines that are tested.
	n := &networks{path: path, first: between[0], last: between[1] - 1, of: map[muster.ClusterID]int{}}
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return n, nil
	}
	var had vlans
	if err == nil {
		had, err = vlansDoc.Decode(path, b)
	}
	if muster.CodeOf(err) == muster.EConflict {
		return nil, err
	}
	if err != nil {
		return nil, muster.Errorf(muster.ECorrupt, "which cluster has which network cannot be read from %s", path).
			WithHint("delete the clusters of bare machines, move the file away, and start the server again").Wrap(err)
	}
	maps.Copy(n.of, had.VLANs)
	return n, nil
}

// save writes the table; n.mu is held.
func (n *networks) save() error {
	b, err := vlansDoc.Encode(&vlans{n.of})
	if err != nil {
		return err
	}
	if err := atomicfile.Replace(n.path, b, 0o600); err != nil {
		return muster.Errorf(muster.EUnavailable, "which cluster has which network cannot be written down").
			WithHint("see whether the disk with the state directory is full").Wrap(err)
	}
	return nil
}

func (n *networks) ensure(list []provider.Network) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	was := maps.Clone(n.of)
	taken := map[int]bool{}
	for _, v := range n.of {
		taken[v] = true
	}
	for _, want := range list {
		if _, ok := n.of[want.Cluster]; ok {
			continue
		}
		v := n.first
		for taken[v] {
			v++
		}
		if v > n.last {
			n.of = was
			return muster.Errorf(muster.EUnavailable, "all networks of the switches, %d to %d, are in use", n.first, n.last).Because(muster.ReasonNoNetwork).
				WithHint("give Muster more of them with --metal-vlans")
		}
		n.of[want.Cluster], taken[v] = v, true
	}
	if maps.Equal(was, n.of) {
		return nil
	}
	if err := n.save(); err != nil {
		n.of = was
		return err
	}
	return nil
}

func (n *networks) remove(list []muster.ClusterID) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	was := maps.Clone(n.of)
	for _, id := range list {
		delete(n.of, id)
	}
	if maps.Equal(was, n.of) {
		return nil
	}
	if err := n.save(); err != nil {
		n.of = was
		return err
	}
	return nil
}

func (n *networks) vlan(id muster.ClusterID) (int, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	v, ok := n.of[id]
	return v, ok
}

// tests is the network in which machines are tried.
func (n *networks) tests() int { return n.last + 1 }

func (n *networks) list() []muster.ClusterID {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Sorted(maps.Keys(n.of))
}

// EnsureNetworks gives each of these clusters a network. Ports join it one by one, when
// their machines boot.
func (p *Provider) EnsureNetworks(_ context.Context, list []provider.Network) error {
	return p.networks.ensure(list)
}

// RemoveNetworks takes the networks of these clusters back. Their machines are off, and
// their ports closed.
func (p *Provider) RemoveNetworks(_ context.Context, list []muster.ClusterID) error {
	return p.networks.remove(list)
}

// Networks lists the clusters that have a network.
func (p *Provider) Networks(context.Context) ([]muster.ClusterID, error) {
	return p.networks.list(), nil
}
