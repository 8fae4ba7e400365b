package control

import (
	"context"
	"slices"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/measure/compare"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// What is read at most for one answer: certificates are long, and a site has many.
const (
	mostSides    = 8   // of a comparison
	mostOfClass  = 64  // of a class in a comparison
	mostMeasured = 200 // measurements of a history
	mostRead     = 600 // certificates of nodes for one
)

// Compare holds clusters, machines, classes and certificates against the first of
// them, by the certificates that the actor may see.
func (s *Service) Compare(ctx context.Context, who muster.Actor, q wire.CompareQuery) (wire.Comparison, error) {
	if len(q.Of) < 2 || len(q.Of) > mostSides {
		why := muster.ReasonTooMany
		if len(q.Of) < 2 {
			why = muster.ReasonRequired
		}
		return wire.Comparison{}, muster.Errorf(muster.EInvalid, "%d were given to compare", len(q.Of)).Because(why).
			WithHint("give two to %d clusters, machines or certificates; the first is what the others are compared with", mostSides)
	}
	if err := compare.Across(q.Across); err != nil {
		return wire.Comparison{}, err
	}
	rules := compare.Usual()
	rules.Across, rules.Metric = q.Across, q.Metric
	var sides []compare.Side
	err := s.Store.View(ctx, who, func(tx *store.Tx) error {
		for _, ref := range q.Of {
			o, err := s.subject(tx, ref)
			if err != nil {
				return err
			}
			side, err := newestOf(tx, o)
			if err != nil {
				return err
			}
			rules.Machines = rules.Machines || o.kind == ofClass
			sides = append(sides, side)
		}
		return nil
	})
	if err != nil {
		return wire.Comparison{}, err
	}
	if err := distinct(sides); err != nil {
		return wire.Comparison{}, err
	}
	out, err := compare.Compare(sides, rules)
	if err != nil {
		return out, err
	}
	if len(out.Metrics) == 0 {
		return out, muster.Errorf(muster.ENotFound, "they have no metric in common").Because(muster.ReasonNoMetric).WithHint("%s", noMetricHint(q.Metric))
	}
	return out, nil
}

func noMetricHint(metric string) string {
	if metric != "" {
		return "leave --metric away to see which there are"
	}
	return "compare what was measured alike: certificates of nodes with certificates of nodes"
}

// distinct refuses to compare something with itself, of which no test could tell
// anything, and takes from classes what is of the others beside them.
func distinct(sides []compare.Side) error {
	in := func(c muster.Certificate, list []muster.Certificate) bool {
		return slices.ContainsFunc(list, func(o muster.Certificate) bool { return o.ID == c.ID })
	}
	for i := range sides {
		for j := range sides {
			a, b := &sides[i], sides[j]
			switch {
			case i == j:
			case a.As.Kind == ofClass && b.As.Kind != ofClass:
				rest := slices.DeleteFunc(slices.Clone(a.Certificates), func(c muster.Certificate) bool { return in(c, b.Certificates) })
				if len(rest) == 0 {
					return muster.Errorf(muster.EConflict, "class %s has no other machines than those of %s", a.As.Class, b.As.Name).Because(muster.ReasonNotOneThing).
						WithHint("compare when others of the class were measured")
				}
				a.Certificates = rest
			case i < j && !slices.ContainsFunc(a.Certificates, func(c muster.Certificate) bool { return !in(c, b.Certificates) }):
				return muster.Errorf(muster.EInvalid, "%s and %s are the same, or one is a part of the other", a.As.Name, b.As.Name).Because(muster.ReasonNotOneThing).
					WithHint("compare with another, or with an earlier certificate: see 'muster certificate list --all'")
			}
		}
	}
	return nil
}

// newestOf are the certificates by which something is compared.
func newestOf(tx *store.Tx, o subject) (compare.Side, error) {
	side := compare.Side{As: wire.ComparedSide{Name: o.name, Kind: o.kind, Cluster: o.cluster.ID, Machine: o.machine, Class: o.class}}
	var ids []muster.CertificateID
	switch o.kind {
	case ofCertificate:
		ids = []muster.CertificateID{o.certificate.ID}
		side.As.Cluster, side.As.Machine = o.certificate.Cluster, o.certificate.Machine
	case ofCluster:
		list, err := tx.Certificates(store.CertificateFilter{Cluster: o.cluster.ID, Kind: muster.CertifiesCluster, Limit: 1})
		if err == nil && len(list) == 0 {
			list, err = tx.Certificates(store.CertificateFilter{Cluster: o.cluster.ID, Kind: muster.CertifiesNode, Present: true, Limit: mostCertificates})
			list = perMachine(list, len(list))
		}
		if err != nil {
			return side, err
		}
		ids = idsOf(list)
	case ofMachine:
		list, err := tx.Certificates(store.CertificateFilter{Machine: o.machine, Kind: muster.CertifiesNode, Limit: 1})
		if err != nil {
			return side, err
		}
		ids = idsOf(list)
	case ofClass:
		list, err := tx.Certificates(store.CertificateFilter{Class: o.class, Kind: muster.CertifiesNode, Limit: mostCertificates})
		if err != nil {
			return side, err
		}
		if some := slices.DeleteFunc(slices.Clone(list), func(c store.Certificate) bool { return !c.Certified }); len(some) > 0 {
			list = some
		}
		ids = idsOf(perMachine(list, mostOfClass))
	}
	certs, err := tx.CertificateContents(ids...)
	if err != nil {
		return side, err
	}
	if len(certs) == 1 && certs[0].Kind == muster.CertifiesCluster {
		nodes, err := tx.CertificateContents(nodesOf(certs[0])...)
		if err != nil {
			return side, err
		}
		certs = append(certs, nodes...)
	}
	if len(certs) == 0 {
		return side, o.unmeasured(false)
	}
	if o.kind != ofClass { // of whom its certificates are is nobody's business
		for _, c := range certs {
			side.As.Certificates = append(side.As.Certificates, c.ID)
		}
	}
	side.Certificates = certs
	return side, nil
}

func idsOf(list []store.Certificate) []muster.CertificateID {
	var ids []muster.CertificateID
	for _, c := range list {
		ids = append(ids, c.ID)
	}
	return ids
}

// perMachine are the newest certificates of so many machines, one each; the list
// has the newest first.
func perMachine(list []store.Certificate, most int) []store.Certificate {
	var out []store.Certificate
	seen := map[muster.MachineID]bool{}
	for _, c := range list {
		if !seen[c.Machine] && len(out) < most {
			seen[c.Machine] = true
			out = append(out, c)
		}
	}
	return out
}

// History reports how the figures of a cluster, a machine or a class went over time,
// by the certificates that the actor may see. Of a class only figures are told, not
// whose they were.
func (s *Service) History(ctx context.Context, who muster.Actor, q wire.HistoryQuery) (wire.History, error) {
	rules := compare.UsualHistory()
	rules.Metric = q.Metric
	var list []compare.Measurement
	var o subject
	var results []muster.HPLResult
	older := false
	since := s.agoOf(q.Since)
	err := s.Store.View(ctx, who, func(tx *store.Tx) error {
		var err error
		if o, err = s.subject(tx, q.Of); err != nil {
			return err
		}
		switch o.kind {
		case ofCertificate:
			return muster.Errorf(muster.EInvalid, "%s is one certificate", q.Of).Because(muster.ReasonBadValue).WithHint("the history of its cluster: muster history %s", o.certificate.Cluster)
		case ofCluster:
			list, older, err = ofOneCluster(tx, o.cluster.ID, since)
		case ofMachine:
			list, older, err = ofNodes(tx, store.CertificateFilter{Machine: o.machine, Since: since, Limit: mostMeasured})
		case ofClass:
			rules.Class = true
			list, older, err = ofNodes(tx, store.CertificateFilter{Class: o.class, Since: since, Limit: mostRead})
		}
		if err != nil || q.Metric != "" && q.Metric != "hpl" {
			return err
		}
		results, err = hplOf(tx, o, since, list)
		return err
	})
	if err != nil {
		return wire.History{}, err
	}
	if len(list)+len(results) == 0 {
		return wire.History{}, o.unmeasured(q.Since > 0)
	}
	hpl := compare.HPL(results, list)
	if o.kind == ofClass && hpl != nil {
		for i := range hpl.Runs {
			hpl.Runs[i].Result = ""
		}
	}
	if o.kind == ofClass {
		for i := range list {
			list[i].Name = ""
		}
	}
	out, err := compare.History(list, rules)
	if err != nil {
		return out, err
	}
	out.Of, out.Kind, out.Older, out.HPL = q.Of, o.kind, older, hpl
	if len(out.Metrics) == 0 && out.HPL == nil && q.Metric != "" {
		return out, muster.Errorf(muster.ENotFound, "there is no metric %q in these certificates", q.Metric).Because(muster.ReasonNoMetric).WithHint("%s", noMetricHint(q.Metric))
	}
	return out, nil
}

// ofNodes are measurements by the certificates of nodes: those of one cluster that
// were made together are one measurement.
func ofNodes(tx *store.Tx, f store.CertificateFilter) (list []compare.Measurement, older bool, err error) {
	f.Kind = muster.CertifiesNode
	rows, err := tx.Certificates(f)
	if err != nil {
		return nil, false, err
	}
	certs, err := tx.CertificateContents(idsOf(rows)...)
	if err != nil {
		return nil, false, err
	}
	type together struct {
		cluster muster.ClusterID
		at      time.Time
	}
	at := map[together]int{}
	for _, c := range certs {
		k := together{c.Cluster, c.Began}
		if c.Began.IsZero() {
			k.at = c.Made
		}
		i, ok := at[k]
		if !ok {
			i = len(list)
			at[k] = i
			list = append(list, compare.Measurement{At: c.Made, Name: c.ID})
		}
		list[i].Certificates = append(list[i].Certificates, c)
		if len(list[i].Certificates) > 1 {
			list[i].Name = ""
		}
	}
	return list, len(rows) == f.Limit, nil
}

// ofOneCluster are the measurements of a cluster, by its manifests. A node that was
// not measured anew counts where it was measured; where most were not, nodes are
// left out, and in old measurements of many nodes, too.
func ofOneCluster(tx *store.Tx, id muster.ClusterID, since time.Time) (list []compare.Measurement, older bool, err error) {
	rows, err := tx.Certificates(store.CertificateFilter{Cluster: id, Kind: muster.CertifiesCluster, Since: since, Limit: mostMeasured})
	if err != nil {
		return nil, false, err
	}
	if len(rows) == 0 {
		return ofNodes(tx, store.CertificateFilter{Cluster: id, Since: since, Limit: mostRead})
	}
	manifests, err := tx.CertificateContents(idsOf(rows)...)
	if err != nil {
		return nil, false, err
	}
	left := mostRead
	for i, c := range manifests { // newest first
		m := compare.Measurement{At: c.Made, Name: c.ID, Certificates: []muster.Certificate{c}}
		fresh := nodesOf(c)
		if i+1 < len(manifests) {
			before := nodesOf(manifests[i+1])
			fresh = slices.DeleteFunc(fresh, func(id muster.CertificateID) bool { return slices.Contains(before, id) })
		}
		if left -= len(fresh); left >= 0 && 2*len(fresh) > len(c.Nodes) {
			nodes, err := tx.CertificateContents(fresh...)
			if err != nil {
				return nil, false, err
			}
			m.Certificates = append(m.Certificates, nodes...)
		}
		list = append(list, m)
	}
	return list, len(rows) == mostMeasured, nil
}
