package measure

import (
	"context"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/measure/analysis"
	"github.com/muster-hpc/muster/measure/compare"
	"github.com/muster-hpc/muster/store"
)

// What is read of the past of a class at most: the newest.
const (
	mostOfNodes    = 400
	mostOfClusters = 60
)

// past are the certificates of the classes of a cluster's machines.
type past map[string][]muster.Certificate

// past reads what was certified of the classes of the nodes. Whose clusters these
// were does not matter: nothing but figures leaves this package.
func (j *job) past(ctx context.Context, s *subject) (past, error) {
	out := past{}
	err := j.r.c.Store.View(ctx, muster.System(), func(tx *store.Tx) error {
		for _, n := range s.validated() {
			if _, ok := out[n.Class]; ok || n.Class == "" {
				continue
			}
			out[n.Class] = []muster.Certificate{}
			for kind, most := range map[muster.CertificateKind]int{muster.CertifiesNode: mostOfNodes, muster.CertifiesCluster: mostOfClusters} {
				list, err := tx.Certificates(store.CertificateFilter{Class: n.Class, Kind: kind, Limit: most})
				if err != nil {
					return err
				}
				var ids []muster.CertificateID
				for _, row := range list {
					if row.Certified {
						ids = append(ids, row.ID)
					}
				}
				certs, err := tx.CertificateContents(ids...)
				if err != nil {
					return err
				}
				out[n.Class] = append(out[n.Class], certs...)
			}
		}
		return nil
	})
	return out, err
}

// of is what machines of a class showed under the conditions of the nodes of that
// class: those of the first, which are alike on machines of one class. Of whole
// clusters it is what as many at these distances showed.
func (p past) of(nodes []analysis.Candidate, distances []analysis.Distance) func(class string) map[compare.Key]compare.ClassFigure {
	return func(class string) map[compare.Key]compare.ClassFigure {
		var like *muster.Certificate
		together := muster.Certificate{Kind: muster.CertifiesCluster, Pairs: &muster.Pairs{}}
		for _, d := range distances {
			together.Pairs.Metrics = append(together.Pairs.Metrics, muster.Metric{Distance: string(d)})
		}
		var machines []muster.MachineID
		for _, n := range nodes {
			if n.Class != class {
				continue
			}
			machines = append(machines, n.Machine)
			together.Nodes = append(together.Nodes, muster.CertifiedNode{Node: n.Name, Machine: n.Machine})
			if like == nil {
				like = &muster.Certificate{Kind: muster.CertifiesNode, Class: class, Image: n.Conditions.Image, Conditions: n.Conditions}
			}
		}
		if like == nil || len(p[class]) == 0 {
			return nil
		}
		// What a node can have wrong is what is looked for: it must not keep its class's
		// past from being held against it.
		if u := p.usual(class, like.Image); u != nil {
			like.Conditions.BLAS, like.Conditions.Clock, like.Conditions.Pages = u.BLAS, u.Clock, u.Pages
		}
		like.Kind, like.Nodes, like.Pairs = together.Kind, together.Nodes, together.Pairs
		return compare.Class(p[class], *like, machines)
	}
}

// usual are the conditions under which nodes of a class with this image were last
// found to be good; nil if there are none.
func (p past) usual(class string, image muster.ImageID) *muster.TestEnvironment {
	var newest *muster.Certificate
	for i, c := range p[class] {
		if c.Kind == muster.CertifiesNode && c.Certified && c.Normal() && c.Image == image && (newest == nil || c.Made.After(newest.Made)) {
			newest = &p[class][i]
		}
	}
	if newest == nil {
		return nil
	}
	return &newest.Conditions
}
