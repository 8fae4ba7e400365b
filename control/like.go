package control

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/spec"
	"github.com/muster-hpc/muster/control/topology"
	"github.com/muster-hpc/muster/internal/plaintext"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// likeness is the cluster that another one is to be like.
type likeness struct {
	cluster muster.Cluster
	// distance is how far its compute nodes are from each other; nil: nothing is known of
	// that, or it has no machines any more.
	distance *muster.PlanDistance
	nodes    int // compute nodes with machines
	// content: the image is asked for by its very content.
	content bool
}

// like fills in what a request leaves open and the cluster had that it names, and adds to
// its notices what gave way to what the request says: see spec.Inherit. The likeness is nil where
// it names none.
func (s *Service) like(ctx context.Context, who muster.Actor, req *wire.Request, d spec.Defaults, w *parsedRequest) ([]muster.Problem, error) {
	if req.Like == "" {
		return nil, nil
	}
	l := &likeness{}
	err := s.Store.View(ctx, who, func(tx *store.Tx) (err error) {
		if l.cluster, err = tx.FindCluster(req.Like); err != nil {
			return err
		}
		return l.look(tx)
	})
	if e := asError(err); e != nil && (e.Code == muster.ENotFound || e.Code == muster.EConflict) {
		req.Nodes = cmp.Or(req.Nodes, 1) // how many is not what is wrong
		return []muster.Problem{{Field: "like", Reason: e.Reason, Message: e.Message, Hint: cmp.Or(e.Hint, "name a cluster that you may see: muster list --all")}}, nil
	}
	if err != nil {
		return nil, err
	}
	c, had := l.cluster, spec.RequestOf(l.cluster.Spec)
	had.Machine.Class = cmp.Or(c.Class, had.Machine.Class)
	if c.Image != "" {
		had.Image, had.Packages = s.contentOf(c.Image, len(req.Packages) > 0), nil // its packages are in that
		l.content = req.Image == "" && len(req.Packages) == 0
	}
	var left []string
	*req, left = spec.Inherit(*req, had, d)
	for _, text := range left {
		w.notices = append(w.notices, fmt.Sprintf("not as in %s: %s", c.Name, text))
	}
	w.like = l
	return nil, nil
}

// contentOf is how a request names a content: IMAGE@CONTENT, where that means it. base: that of
// what it was derived from.
func (s *Service) contentOf(id muster.ImageID, base bool) string {
	img, err := s.Config.Images.Resolve(string(id))
	if err == nil && base && img.Base != "" {
		id = img.Base
		img, err = s.Config.Images.Resolve(string(id))
	}
	if err != nil {
		return string(id)
	}
	ref := img.Name + "@" + id.Short()
	if same, err := s.Config.Images.Resolve(ref); err != nil || same.ID != id {
		return string(id)
	}
	return ref
}

// look finds where its nodes stand.
func (l *likeness) look(tx *store.Tx) error {
	sys := tx.AsSystem()
	machines, err := sys.Machines(store.MachineFilter{Cluster: l.cluster.ID})
	if err != nil {
		return err
	}
	nodes, err := sys.Nodes(l.cluster.ID)
	if err != nil {
		return err
	}
	computes := map[muster.MachineID]bool{}
	for _, n := range nodes {
		if n.Role == muster.RoleCompute && n.Machine != "" {
			computes[n.Machine] = true
		}
	}
	machines = slices.DeleteFunc(machines, func(m muster.Machine) bool { return !computes[m.ID] })
	l.nodes = len(machines)
	var ids []muster.MachineID
	for _, m := range machines {
		ids = append(ids, m.ID)
	}
	t, err := sys.SiteTree()
	if err != nil || topology.Plain(t, machines) || len(ids) < 2 {
		return err
	}
	l.distance = topology.New(t, machines).Distance(ids, 0)
	return nil
}

// differs says what is not as it was in the cluster that this one is to be like.
func (l *likeness) differs(newest func(name string) (*muster.Image, error), answer muster.Answer) []string {
	if l == nil {
		return nil
	}
	name := l.cluster.Name
	var list []string
	image, _, _ := strings.Cut(l.cluster.Spec.Image, "@")
	if img, err := newest(image); l.content && err == nil && img.ID != l.cluster.Image && len(l.cluster.Spec.Packages) == 0 {
		list = append(list, fmt.Sprintf("like %s it has the content that image %s had then; today %s is another one (to have that: --image %s)", name, image, image, image))
	}
	p := answer.Plan
	if p == nil {
		return list
	}
	if p.Class != "" && l.cluster.Class != "" && p.Class != l.cluster.Class {
		list = append(list, fmt.Sprintf("its machines are of class %s, those of %s of %s", p.Class, name, l.cluster.Class))
	}
	now, was := p.Distance, l.distance
	switch {
	case l.nodes == 0:
		list = append(list, fmt.Sprintf("%s has no machines any more: how far its nodes were from each other is not known", name))
	case now == nil || was == nil:
	case now.Switches != was.Switches:
		list = append(list, fmt.Sprintf("at most %s between two of its nodes, in %s %s", switches(now.Switches), name, switches(was.Switches)))
	case computesOf(p) == l.nodes && (now.Cost > 1.01*was.Cost || now.Cost < was.Cost/1.01):
		list = append(list, fmt.Sprintf("communication between its nodes costs %.3g times what it costs in %s", now.Cost/was.Cost, name))
	}
	return list
}

func switches(n int) string {
	if n == 1 {
		return "1 switch is"
	}
	return plaintext.Count(n, "switch") + " are"
}

func computesOf(p *muster.Plan) int {
	n := 0
	for _, a := range p.Assign {
		if a.Role == muster.RoleCompute {
			n++
		}
	}
	return n
}
