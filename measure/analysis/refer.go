package analysis

// Refer adds to figures of nodes what theory allows and what the site promises. A
// peak is only shown; who breaks a promise is low, and the gravest verdict counts.
// It comes after Suspects and Condemned, which compare nodes with each other and
// with their class.
func Refer(nodes []Candidate, judged []Judged, promises Targets) {
	for i := range judged {
		j := &judged[i]
		if j.Node < 0 || j.Node >= len(nodes) {
			continue
		}
		n := nodes[j.Node]
		withTarget(j, n.Class, promises)
		withPeak(j, n.Conditions)
	}
}

// ReferFabric does so with what is between nodes. A promise of a class is of pairs
// in which both are of it.
func ReferFabric(nodes []Candidate, judged *FabricJudged, promises Targets) {
	for i := range judged.Links {
		l := &judged.Links[i]
		if l.A < 0 || l.B >= len(nodes) {
			continue
		}
		class := nodes[l.A].Class
		if nodes[l.B].Class != class {
			class = ""
		}
		withTarget(&l.Judged, class, promises)
	}
	class := ""
	for i, n := range nodes {
		if i == 0 {
			class = n.Class
		} else if n.Class != class {
			class = ""
		}
	}
	for i := range judged.Tiers {
		withTarget(&judged.Tiers[i].Judged, class, promises)
	}
}
