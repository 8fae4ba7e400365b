package control

import (
	"net/netip"
	"slices"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
)

// firstHost is where the addresses of nodes begin within their subnet: what
// is below is left for what a network may need itself.
const firstHost = 10

// assign builds a cluster on the machines of a plan, in the transaction that also
// writes the cluster. allocate.Stale tells of a plan that no longer holds.
func (s *Service) assign(tx *store.Tx, c *muster.Cluster, img *muster.Image, plan muster.Plan, keys *secrets, text string) error {
	sys := tx.AsSystem()
	now := s.Clock.Now()
	index, subnet, err := sys.FreeSubnet()
	if err != nil {
		return err
	}
	c.Phase, c.PhaseSince = muster.ClusterBuilding, now
	c.Subnet, c.NetworkIndex, c.Class = subnet, index, plan.Class
	c.Conditions = slices.DeleteFunc(c.Conditions, waits)
	if len(c.Spec.Packages) == 0 {
		c.Image = img.ID
	} else {
		c.Conditions = append(c.Conditions, muster.Condition{Code: muster.ConditionImage, Since: now,
			Text: "an image with the extra packages is needed", Hint: "it is built once and kept"})
	}
	if eta, spread, ok := s.estimate(sys, c.Spec, c.Class, img.ID); ok && len(c.Spec.Packages) == 0 {
		c.ETA, c.ETASpread = now.Add(eta), muster.Duration(spread)
	}
	if err := tx.PutCluster(*c, text); err != nil {
		return err
	}
	nodes := make([]muster.Node, 0, len(plan.Assign))
	for _, a := range plan.Assign {
		nodes = append(nodes, muster.Node{
			Cluster: c.ID, Name: a.Node, Index: a.Index, Role: a.Role, Head: a.Head, Address: hostAddress(subnet, a.Index),
		})
	}
	if _, err := s.Allocator.Assign(tx, plan, nodes); err != nil {
		return err
	}
	return keys.put(sys, c.ID, plan)
}

// hostAddress is the address of node index in a subnet.
func hostAddress(subnet netip.Prefix, index int) netip.Addr {
	a := subnet.Masked().Addr().As4()
	n := uint32(a[0])<<24 | uint32(a[1])<<16 | uint32(a[2])<<8 | uint32(a[3])
	n += uint32(firstHost + index)
	return netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
}

// estimate is how long clusters of this class and image took to be built: the
// median of the last ones, and the median distance from it.
func (s *Service) estimate(sys *store.Tx, spec muster.Spec, class string, img muster.ImageID) (usual, spread time.Duration, ok bool) {
	took, err := sys.Durations(spec.DurationKind("build"), class, string(img), 20)
	if err != nil || len(took) == 0 {
		return 0, 0, false
	}
	usual, took = middle(took), slices.Clone(took)
	for i := range took {
		took[i] = (took[i] - usual).Abs()
	}
	return usual, middle(took), true
}

func middle(list []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[len(sorted)/2]
}
