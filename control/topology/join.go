package topology

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/nodeset"
)

// Seat is where some machines stand: in a chassis, behind a leaf, in a data centre. "": not said.
type Seat struct {
	Chassis, Leaf, DataCentre string
	Machines                  string // as a set of names
}

// joiner finds the tree of what seats and links say.
type joiner struct {
	problems []muster.Problem
	stands   map[string]*muster.Stand
	names    []string // of stands, in the order in which they were found
	linked   map[string]Link
}

// Join makes a tree of what stands where, and of links. A link between two leaves, two chassis or two data
// centres goes through what joins them: of leaves a spine that is named like the link. Every other name in a
// link is a spine. What stands in a leaf or a data centre, and has no link to it, is joined to it all the same,
// as fast as it goes. nil: nobody says anything of any seat. The error is EInvalid and lists everything that
// is wrong.
func Join(seats []Seat, links []Link) (*muster.SiteTree, error) {
	j := &joiner{stands: map[string]*muster.Stand{}, linked: map[string]Link{}}
	seated, bare := 0, 0
	for _, s := range seats {
		if s.Leaf == "" && s.Chassis == "" {
			bare++
			if s.DataCentre != "" {
				j.wrong("local", muster.ReasonRequired, "write leaf=NAME,datacentre="+s.DataCentre, "machines of data centre %s stand behind no leaf", s.DataCentre)
			}
			continue
		}
		seated++
		j.seat(s)
	}
	switch {
	case seated == 0 && len(links) > 0:
		j.wrong("link", muster.ReasonContradiction, "say where machines stand: --local 4,leaf=A --local 4,leaf=B", "there is a link, and no machine stands behind a leaf")
	case seated > 0 && bare > 0:
		j.wrong("local", muster.ReasonRequired, "write leaf=NAME for all, or for none", "some machines stand behind a leaf, and others behind none")
	}
	for _, l := range links {
		j.link(l)
	}
	j.order()
	j.whole()
	if len(j.problems) > 0 {
		return nil, muster.Errorf(muster.EInvalid, "where local machines stand has problems").Because(muster.ReasonHasProblems).Listing(j.problems)
	}
	if seated == 0 {
		return nil, nil
	}
	t := &muster.SiteTree{}
	slices.SortStableFunc(j.names, func(a, b string) int {
		x, y := j.stands[a], j.stands[b]
		return cmp.Or(rank(x.Kind)-rank(y.Kind), compareNatural(a, b))
	})
	for _, name := range j.names {
		t.Stands = append(t.Stands, *j.stands[name])
	}
	return t, nil
}

func rank(k muster.StandKind) int { return slices.Index(muster.StandKinds(), k) }

func (j *joiner) wrong(field string, reason muster.Reason, hint, format string, args ...any) {
	p := muster.Problem{Field: field, Reason: reason, Hint: hint, Message: fmt.Sprintf(format, args...)}
	if !slices.Contains(j.problems, p) {
		j.problems = append(j.problems, p)
	}
}

// add finds a stand, or puts it in; nil: it is of another kind.
func (j *joiner) add(name string, kind muster.StandKind) *muster.Stand {
	s := j.stands[name]
	if s == nil {
		s = &muster.Stand{Name: name, Kind: kind}
		j.stands[name] = s
		j.names = append(j.names, name)
	}
	if s.Kind != kind {
		j.wrong("local", muster.ReasonContradiction, "give one of them another name", "%s is a %s and a %s", name, s.Kind, kind)
		return nil
	}
	return s
}

// seat puts in what machines stand in.
func (j *joiner) seat(s Seat) {
	var inner *muster.Stand
	for _, at := range []struct {
		name string
		kind muster.StandKind
	}{{s.Chassis, muster.StandChassis}, {s.Leaf, muster.StandLeaf}, {s.DataCentre, muster.StandDataCentre}} {
		if at.name == "" {
			continue
		}
		stand := j.add(at.name, at.kind)
		if stand == nil {
			return
		}
		if inner == nil {
			stand.Machines = JoinSets(stand.Machines, s.Machines)
		} else {
			j.put(inner, at.name)
		}
		inner = stand
	}
}

// JoinSets are two sets of machines as one.
func JoinSets(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	if set, err := nodeset.Parse(a + "," + b); err == nil {
		return set.String()
	}
	return a + "," + b
}

// put says what a stand stands in.
func (j *joiner) put(s *muster.Stand, in string) {
	if s.In != "" && s.In != in {
		j.wrong("local", muster.ReasonContradiction, "it can stand in one only", "%s %s stands in %s and in %s", s.Kind, s.Name, s.In, in)
		return
	}
	s.In = in
}

// link puts in a link.
func (j *joiner) link(l Link) {
	field := "link " + l.String()
	a, b := j.stands[l.A], j.stands[l.B]
	switch {
	case a == nil && b == nil:
		j.wrong(field, muster.ReasonBadValue, "name a leaf, a chassis or a data centre of --local", "no machine stands in %s or in %s", l.A, l.B)
		return
	case a == nil:
		a = j.add(l.A, muster.StandSpine)
	case b == nil:
		b = j.add(l.B, muster.StandSpine)
	}
	if rank(a.Kind) < rank(b.Kind) {
		a, b = b, a
	}
	switch {
	case rank(a.Kind) > rank(b.Kind):
		j.up(field, a, b.Name, l)
	case a.Kind == muster.StandSpine:
		j.wrong(field, muster.ReasonContradiction, "join leaves to one of them", "%s and %s are both spines", a.Name, b.Name)
	case a.Kind == muster.StandDataCentre:
		j.up(field, a, "", l)
		j.up(field, b, "", l)
	default:
		kind := muster.StandSpine
		if a.Kind == muster.StandChassis {
			kind = muster.StandLeaf
		}
		if a.In != b.In && a.In != "" && b.In != "" {
			j.wrong(field, muster.ReasonContradiction, fmt.Sprintf("join what they stand in: --link %s-%s=%s", a.In, b.In, Rate(l.Rate)), "%s stands in %s, and %s in %s", a.Name, a.In, b.Name, b.In)
			return
		}
		name := l.A + "-" + l.B
		if middle := j.add(name, kind); middle != nil {
			j.up(field, a, name, l)
			j.up(field, b, name, l)
		}
	}
}

// up makes a link the uplink of a stand.
func (j *joiner) up(field string, s *muster.Stand, in string, l Link) {
	if first, twice := j.linked[s.Name]; twice {
		j.wrong(field, muster.ReasonContradiction, "join several through a switch: "+through(s.Name, first, l), "%s has a link already (%s), and it can have one", s.Name, first)
		return
	}
	j.linked[s.Name] = l
	s.Uplink, s.Cables = l.Rate, l.Cables
	// Between two that are alike, a half is on each side of the middle.
	s.Delay = muster.Duration(l.Delay)
	if in == "" || strings.Contains(in, "-") {
		s.Delay = muster.Duration(l.Delay / 2)
	}
	outer := s.In
	if in == "" || in == outer {
		return
	}
	s.In = in
	if outer != "" { // it stands in what it is joined to, and that in what it stood in
		j.put(j.stands[in], outer)
	}
}

// through are the links by which a stand with several should be joined to others.
func through(name string, a, b Link) string {
	names := []string{name}
	for _, n := range []string{a.A, a.B, b.A, b.B} {
		if !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	var out []string
	for _, n := range names {
		out = append(out, fmt.Sprintf("--link %s-core=%s", n, Rate(b.Rate)))
	}
	return strings.Join(out, " ")
}

// order looks whether each stand may stand where it does.
func (j *joiner) order() {
	for _, name := range j.names {
		s := j.stands[name]
		if outer := j.stands[s.In]; outer != nil && rank(outer.Kind) >= rank(s.Kind) {
			j.wrong("link", muster.ReasonContradiction, "from the outside in there are: datacentre, spine, leaf, chassis", "a %s cannot stand in a %s: %s in %s", s.Kind, outer.Kind, s.Name, outer.Name)
		}
	}
}

// whole looks for what is joined to nothing.
func (j *joiner) whole() {
	var tops, centres []string
	for _, name := range j.names {
		if s := j.stands[name]; s.In == "" {
			tops = append(tops, name)
			if s.Kind == muster.StandDataCentre {
				centres = append(centres, name)
			}
		}
	}
	slices.SortFunc(tops, compareNatural)
	switch {
	case len(tops) < 2:
	case len(centres) < len(tops):
		list := strings.Join(tops, ", ")
		j.wrong("link", muster.ReasonRequired, fmt.Sprintf("join two by --link %s-%s=1Gb/s, and more through a switch: --link %s-core=1Gb/s, and so on", tops[0], tops[1], tops[0]), "nothing joins %s", list)
	case len(tops) > 2:
		j.wrong("local", muster.ReasonTooMany, "try two", "%d data centres are too many: a link joins two", len(tops))
	}
	for _, name := range centres {
		if _, ok := j.linked[name]; !ok && len(centres) == 2 {
			j.wrong("link", muster.ReasonRequired, fmt.Sprintf("write --link %s-%s=100Mb/s", centres[0], centres[1]), "nothing joins the data centres %s and %s", centres[0], centres[1])
		}
	}
}
