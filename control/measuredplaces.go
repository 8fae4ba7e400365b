package control

import (
	"slices"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/topology"
	"github.com/muster-hpc/muster/internal/nodeset"
	"github.com/muster-hpc/muster/measure/analysis"
	"github.com/muster-hpc/muster/store"
)

// measuredCertificates are the newest certificates of clusters that are held against the tree.
const measuredCertificates = 100

// measuredPlaces holds the distances that certificates show against where machines stand now: those that measure
// as if they stood elsewhere, one sentence each, and those that are confirmed, as a set. Of each machine the
// newest word counts. Nothing is said of whose clusters these were.
func measuredPlaces(tx *store.Tx, tree *topology.Tree) (doubts []string, confirmed string, err error) {
	sys := tx.AsSystem()
	list, err := sys.Certificates(store.CertificateFilter{Kind: muster.CertifiesCluster, Present: true, Limit: measuredCertificates})
	if err != nil {
		return nil, "", err
	}
	certs, err := sys.CertificateContents(idsOf(list)...)
	if err != nil {
		return nil, "", err
	}
	slices.SortStableFunc(certs, func(a, b muster.Certificate) int { return b.Made.Compare(a.Made) })
	told := map[muster.MachineID]bool{}
	var names []string
	for _, c := range certs {
		if c.Pairs == nil {
			continue
		}
		nodes := make([]analysis.Node, len(c.Nodes))
		for i, n := range c.Nodes {
			nodes[i] = analysis.Node{Name: n.Node, Place: analysis.Place{Path: analysis.PathOf(tree.Around(n.Machine))}}
		}
		for _, s := range analysis.Standings(nodes, c.Pairs.Figures) {
			id := c.Nodes[s.Node].Machine
			if told[id] {
				continue
			}
			told[id] = true
			if s.Measures == s.Registered {
				names = append(names, string(id))
			} else {
				doubts = append(doubts, s.Text(string(id)))
			}
		}
	}
	slices.Sort(doubts)
	return doubts, nodeset.Fold(names), nil
}
