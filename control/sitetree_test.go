package control_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/internal/errortest"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

const described = `stands:
  - {name: core, kind: spine}
  - {name: leaf1, kind: leaf, in: core, uplink: 2Gb/s, link: 1Gb/s, machines: "fake-[01-04]"}
  - {name: leaf2, kind: leaf, in: core, uplink: 2Gb/s, link: 1Gb/s, machines: "fake-[05-08],other-1"}
`

// A description counts for what is asked from then on, and for what is shown.
func TestTopology(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 8})
	before, err := s.Control.SiteTopology(t.Context(), root())
	if err != nil || before.Described || len(before.Stands) == 0 || !before.Stands[0].Registered {
		t.Fatalf("%+v, %v", before, err)
	}
	alice := muster.Actor{Name: "alice", Projects: []string{"aero"}}
	if _, err := s.Control.ImportTopology(t.Context(), alice, wire.TopologyImport{Text: described}); muster.CodeOf(err) != muster.EForbidden {
		t.Errorf("a user describes the site: %v", err)
	}
	dry, err := s.Control.ImportTopology(t.Context(), root(), wire.TopologyImport{Text: described, DryRun: true})
	if after, _ := s.Control.SiteTopology(t.Context(), root()); err != nil || len(dry.Stands) != 3 || after.Described {
		t.Errorf("a dry run: %+v %+v %v", dry, after, err)
	}
	got, err := s.Control.ImportTopology(t.Context(), root(), wire.TopologyImport{Text: described})
	if err != nil || !got.Described || got.By != root().Name || got.Unknown != "other-1" || got.Stands[1].Name != "leaf1" || got.Stands[1].Free != 4 {
		t.Fatalf("%+v, %v", got, err)
	}
	// What is wrong changes nothing.
	_, err = s.Control.ImportTopology(t.Context(), root(), wire.TopologyImport{Text: strings.ReplaceAll(described, "in: core", "in: cor")})
	if problems := errortest.Problems(errortest.Listed(err)); len(problems) != 2 || problems[0] != "stands[1].in bad-value line 3" {
		t.Errorf("%q", problems)
	}
	if after, err := s.Control.SiteTopology(t.Context(), alice); err != nil || len(after.Stands) != 3 {
		t.Errorf("%+v, %v", after, err)
	}

	created, err := s.Control.CreateCluster(t.Context(), root(), yaml("name: cfd; nodes: 4; head: shared; users: [alice]; within: leaf"))
	if err != nil || created.Answer.Plan == nil || created.Answer.Plan.Distance == nil || created.Answer.Plan.Distance.Switches != 1 {
		t.Fatalf("%+v, %v", created.Answer.Plan, err)
	}
	put(t, s, func(tx *store.Tx) error { return controltest.Finish(tx, created.ID) })
	shown, err := s.Control.Cluster(t.Context(), root(), "cfd")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range shown.Nodes {
		if len(n.Location) != 3 || n.Location[0] != "core" || n.Location[1] != shown.Nodes[0].Location[1] || n.Location[2] != string(n.Machine) {
			t.Errorf("%s is at %v", n.Name, n.Location)
		}
	}
	// A later description that parts it from itself says so, and moves nothing.
	if got, err := s.Control.SiteTopology(t.Context(), root()); err != nil || len(got.Split) != 0 {
		t.Errorf("%q, %v", got.Split, err)
	}
	parted := strings.NewReplacer("[01-04]", "[01-02,07-08]", "[05-08]", "[03-06]").Replace(described)
	dry, err = s.Control.ImportTopology(t.Context(), root(), wire.TopologyImport{Text: parted, DryRun: true})
	if err != nil || len(dry.Split) != 1 || dry.Split[0] != "cluster cfd asked for within: leaf and stands in leaf1, leaf2; its nodes stay where they are" {
		t.Errorf("%q, %v", dry.Split, err)
	}
	// Within a leaf or nowhere.
	wide, err := s.Control.CreateCluster(t.Context(), root(), yaml("name: wide; nodes: 5; head: shared; users: [alice]; within: leaf; queue: false"))
	if muster.CodeOf(err) != muster.ENever || !slices.ContainsFunc(wide.Answer.Change, func(c string) bool { return strings.HasPrefix(c, "ask for within: spine: 5 nodes") }) {
		t.Errorf("%+v, %v", wide.Answer, err)
	}
	if !slices.Contains(wide.Answer.Notices, "within: leaf: room for 4 nodes together, at most") || !strings.Contains(err.Error(), "(within: leaf: room for 4 nodes together, at most)") {
		t.Errorf("%q, %v", wide.Answer.Notices, err)
	}
	// Where no chassis is described, each machine stands alone.
	none, err := s.Control.CreateCluster(t.Context(), root(), yaml("name: none; nodes: 2; head: shared; users: [alice]; within: chassis"))
	if muster.CodeOf(err) != muster.ENever || len(none.Answer.Notices) != 1 || none.Answer.Notices[0] != "within: chassis: room for 1 node together, at most" {
		t.Errorf("%+v, %v", none.Answer, err)
	}
	// The machines of cfd's leaf are all its own.
	leaf := shown.Nodes[0].Location[1]
	_, answer, err := s.Control.Scale(t.Context(), root(), "cfd", wire.ScaleRequest{Nodes: 5})
	wantError(t, err, muster.ENever, muster.ReasonNeverFits, "1 machine needed, 0 fit", "leaf "+leaf+", where the cluster stands, has no free machine that fits, and 4 in all, 4 of them its own",
		"its nodes stay in leaf "+leaf, "muster create NAME --like cfd -n 5 --within site")
	if answer == nil || len(answer.Rejections) != 1 || answer.Rejections[0].Reason != "outside" || answer.Rejections[0].Count != 4 {
		t.Errorf("%+v", answer)
	}
	if err := s.Control.RemoveTopology(t.Context(), root()); err != nil {
		t.Fatal(err)
	}
	if after, err := s.Control.SiteTopology(t.Context(), root()); err != nil || after.Described {
		t.Errorf("%+v, %v", after, err)
	}
	if err := s.Control.RemoveTopology(t.Context(), root()); muster.CodeOf(err) != muster.ENotFound {
		t.Errorf("removed twice: %v", err)
	}
}

// A cluster that is kept in a leaf is told of that leaf when it cannot grow: what is free
// elsewhere does not count, and who is named has something that it may get.
func TestScaleWithinLeaf(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 8})
	if _, err := s.Control.ImportTopology(t.Context(), root(), wire.TopologyImport{Text: described}); err != nil {
		t.Fatal(err)
	}
	ready(t, s, "q1", 2, "; within: leaf")
	shown, err := s.Control.Cluster(t.Context(), root(), "q1")
	if err != nil {
		t.Fatal(err)
	}
	leaf := "leaf " + shown.Nodes[0].Location[1]
	free := leaf + ", where the cluster stands, has 2 free machines that fit, and 4 in all, 2 of them its own"
	none := leaf + ", where the cluster stands, has no free machine that fits, and 4 in all, 2 of them its own"
	scale := func(n int, code muster.Code, why muster.Reason, parts ...string) {
		t.Helper()
		_, answer, err := s.Control.Scale(t.Context(), root(), "q1", wire.ScaleRequest{Nodes: n})
		wantError(t, err, code, why, parts...)
		if text := strings.Join(answer.Change, "|"); n > 4 && strings.Contains(text, "scale again") {
			t.Errorf("%d nodes never come to be in a leaf of four: %q", n, text)
		}
	}
	scale(5, muster.ENever, muster.ReasonNeverFits, "3 machines needed, 2 fit", free, "muster scale q1 +2")
	ready(t, s, "q2", 2, "; within: leaf") // the leaf that is broken already
	scale(4, muster.ENoCapacity, muster.ReasonNoRoom, "2 machines needed, 0 are free", none, "held by q2 (2): scale again")
	scale(5, muster.ENever, muster.ReasonNeverFits, "3 machines needed, 2 fit", none, "held by q2 (2): when they are given back, at most: muster scale q1 +2")
}

// What a cluster had is asked for by its name, and what differs is said.
func TestLike(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 8})
	if _, err := s.Control.ImportTopology(t.Context(), root(), wire.TopologyImport{Text: described}); err != nil {
		t.Fatal(err)
	}
	ready(t, s, "first", 3, "; within: leaf")
	ask := func(text string) (wire.Created, error) {
		c := yaml(text)
		c.DryRun = true
		return s.Control.CreateCluster(t.Context(), root(), c)
	}
	like, err := ask("name: second; like: first; users: [alice]")
	if err != nil {
		t.Fatal(err)
	}
	was, err := s.Control.Cluster(t.Context(), root(), "first")
	if err != nil {
		t.Fatal(err)
	}
	if got := like.Spec; got.Nodes != 3 || got.Within != "leaf" || got.Machine.Class != was.Class || got.Image != "hpc@"+was.Image.Short() || got.Head != muster.HeadShared {
		t.Errorf("%+v", got)
	}
	if len(like.Answer.Notices) > 0 {
		t.Errorf("nothing differs: %q", like.Answer.Notices)
	}
	far, err := ask("name: second; like: first; nodes: 5; within: site; head: shared; users: [alice]")
	if err != nil || far.Spec.Nodes != 5 || !slices.ContainsFunc(far.Answer.Notices, func(n string) bool {
		return strings.Contains(n, "3 switches are between two of its nodes, in first 1 switch is")
	}) {
		t.Errorf("%q, %v", far.Answer.Notices, err)
	}
	// What is said counts before what the other has.
	ready(t, s, "wide", 2, "; placement: spread")
	near, err := ask("name: second; like: wide; within: leaf; users: [alice]")
	if err != nil || near.Spec.Within != "leaf" || near.Spec.Placement != muster.PlacePack || near.Spec.Head != muster.HeadShared ||
		!slices.Contains(near.Answer.Notices, "not as in wide: placement: spread: within: leaf and placement: spread contradict each other") {
		t.Errorf("%+v %q, %v", near.Spec, near.Answer.Notices, err)
	}
	apart, err := ask("name: second; like: first; placement: spread; users: [alice]")
	if err != nil || apart.Spec.Within != "" || apart.Spec.Placement != muster.PlaceSpread ||
		!slices.Contains(apart.Answer.Notices, "not as in first: within: leaf: within: leaf and placement: spread contradict each other") {
		t.Errorf("%+v %q, %v", apart.Spec, apart.Answer.Notices, err)
	}
	_, err = ask("name: second; like: frist; users: [alice]")
	if problems := errortest.Problems(errortest.Listed(err)); !slices.ContainsFunc(problems, func(p string) bool { return strings.HasPrefix(p, "like no-such") }) {
		t.Errorf("%q", problems)
	}
}

// A spare is of the same leaf, else the nearest, and it says so; never out of what the
// cluster is kept within.
func TestSpareByTopology(t *testing.T) {
	t.Parallel()
	for within, far := range map[string]bool{"": true, "leaf": false} {
		s := controltest.Start(t, controltest.Options{Machines: 9})
		text := strings.NewReplacer("fake-[01-04]", "fake-[01-04],fake-09", "other-1", "").Replace(described)
		if _, err := s.Control.ImportTopology(t.Context(), root(), wire.TopologyImport{Text: text}); err != nil {
			t.Fatal(err)
		}
		more := ""
		if within != "" {
			more = "; within: " + within
		}
		id := ready(t, s, "cfd", 3, more)
		leafOf := func(m muster.MachineID) string {
			if m <= "fake-04" || m == "fake-09" {
				return "leaf1"
			}
			return "leaf2"
		}
		lost := machineOf(t, s, id, "n02")
		lose(t, s, id, "n02", toFenced()...)
		first, why := spare(t, s, id, "n02")
		if leafOf(first.ID) != leafOf(lost) || !strings.Contains(why, leafOf(lost)) {
			t.Errorf("within %q: %s in the place of %s: %q", within, first.ID, lost, why)
		}
		// None of that leaf is left.
		var not []muster.MachineID
		for i := range 9 {
			if m := muster.MachineID("fake-0" + string(rune('1'+i))); leafOf(m) == leafOf(lost) {
				not = append(not, m)
			}
		}
		other, why := spare(t, s, id, "n02", not...)
		if far && (other.ID == "" || leafOf(other.ID) == leafOf(lost) || !strings.Contains(why, "3 switches")) {
			t.Errorf("the nearest is %q: %q", other.ID, why)
		}
		if !far && (other.ID != "" || !strings.Contains(why, "outside")) {
			t.Errorf("within %q: %q, %q", within, other.ID, why)
		}
	}
}
