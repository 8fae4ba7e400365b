package control

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/platform"
	"github.com/muster-hpc/muster/control/program"
	"github.com/muster-hpc/muster/control/spec"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// mostPlatformSides can be compared at once, and mostPlatforms loaded into one project.
const (
	mostPlatformSides = 8
	mostPlatforms     = 100
)

// ImportPlatform loads what the script for clusters that are not Muster's wrote.
func (s *Service) ImportPlatform(ctx context.Context, who muster.Actor, r wire.PlatformImport) (wire.Platform, error) {
	p, err := platform.Read(r.Data)
	var problems []muster.Problem
	if e := asError(err); e != nil {
		problems = e.Problems
	} else if err != nil {
		return wire.Platform{}, err
	}
	p.Name, p.Project, p.Owner, p.Created = cmp.Or(r.Name, p.Name), r.Project, who.Name, s.Clock.Now().UTC()
	if r.Name != "" && !platform.ValidName(r.Name) {
		problems = append(problems, muster.Problem{Field: "name", Reason: muster.ReasonBadName, Message: fmt.Sprintf("%.70q cannot be the name of a platform", r.Name), Hint: "write lower-case letters, digits and hyphens"})
	}
	problems = append(problems, s.ownProject(ctx, who, &p.Project)...)
	if len(problems) > 0 {
		return wire.Platform{}, muster.Errorf(muster.EInvalid, "the platform has problems").Because(muster.ReasonHasProblems).Listing(spec.Distinct(problems))
	}
	err = s.Store.Update(ctx, who, func(tx *store.Tx) error {
		list, err := tx.Platforms()
		if err != nil {
			return err
		}
		n := 0
		for _, other := range list {
			switch {
			case other.Project != p.Project:
			case other.Name != p.Name:
				n++
			case !r.Replace:
				return muster.Errorf(muster.EConflict, "project %s has a platform %s already", p.Project, p.Name).Because(muster.ReasonNameTaken).WithHint("give another --name, or say --replace")
			}
		}
		if n >= mostPlatforms {
			return muster.Errorf(muster.EConflict, "project %s has %d platforms, and may have no more", p.Project, n).Because(muster.ReasonTooMany).WithHint("remove one that is not needed: muster platform remove NAME")
		}
		return tx.PutPlatform(p, "loaded by "+who.Name)
	})
	return platformView(p), err
}

func platformView(p muster.Platform) wire.Platform {
	return wire.Platform{Platform: p, Rows: platform.Compare([]platform.Side{platform.OfPlatform(p)}).Rows}
}

// Platforms lists those that the caller may see.
func (s *Service) Platforms(ctx context.Context, who muster.Actor, page wire.Page) (wire.PlatformList, error) {
	out := wire.PlatformList{Platforms: []wire.PlatformSummary{}}
	err := s.Store.View(ctx, who, func(tx *store.Tx) error {
		list, err := tx.Platforms()
		for _, p := range list {
			sum := wire.PlatformSummary{Name: p.Name, Project: p.Project, Owner: p.Owner, Began: p.Began.Format(time.RFC3339), Launches: len(p.Launches)}
			for _, l := range p.Layouts {
				sum.Nodes = max(sum.Nodes, l.Nodes)
			}
			if len(p.Nodes) > 0 {
				sum.Processor = p.Nodes[0].Processor
			}
			for _, l := range p.Launches {
				if !l.Counts() {
					sum.Failed++
				}
			}
			out.Platforms = append(out.Platforms, sum)
		}
		return err
	})
	out.Platforms, out.More = wire.Cut(out.Platforms, page, func(p wire.PlatformSummary) string { return p.Project + "/" + p.Name })
	return out, err
}

// Platform is one, by its name or PROJECT/NAME.
func (s *Service) Platform(ctx context.Context, who muster.Actor, ref string) (out wire.Platform, err error) {
	err = s.Store.View(ctx, who, func(tx *store.Tx) error {
		p, err := findPlatform(tx, ref)
		out = platformView(p)
		return err
	})
	return out, err
}

func findPlatform(tx *store.Tx, ref string) (muster.Platform, error) {
	list, err := tx.Platforms()
	if err != nil {
		return muster.Platform{}, err
	}
	var found []muster.Platform
	var names []string
	for _, p := range list {
		names = append(names, p.Name)
		if p.Name == ref || p.Project+"/"+p.Name == ref {
			found = append(found, p)
		}
	}
	switch len(found) {
	case 0:
		return muster.Platform{}, muster.Errorf(muster.ENotFound, "there is no platform %.64q", ref).Because(muster.ReasonNoSuchObject).
			WithHint("%s", cmp.Or(didYouMean(ref, names), "`muster platform list` lists them"))
	case 1:
		return found[0], nil
	}
	return muster.Platform{}, muster.Errorf(muster.EConflict, "several projects have a platform %.64q", ref).Because(muster.ReasonAmbiguous).
		WithHint("write PROJECT/NAME, such as %s/%s", found[0].Project, found[0].Name)
}

// RemovePlatform removes one.
func (s *Service) RemovePlatform(ctx context.Context, who muster.Actor, ref string) error {
	return s.Store.Update(ctx, who, func(tx *store.Tx) error {
		p, err := findPlatform(tx, ref)
		if err != nil {
			return err
		}
		return tx.DeletePlatform(p.Project, p.Name, "removed by "+who.Name)
	})
}

// ComparePlatforms puts platforms and clusters side by side. A side is the name of a platform or of
// a cluster; platform:NAME and cluster:NAME say which.
func (s *Service) ComparePlatforms(ctx context.Context, who muster.Actor, refs []string) (wire.PlatformComparison, error) {
	if len(refs) < 2 || len(refs) > mostPlatformSides {
		return wire.PlatformComparison{}, muster.Errorf(muster.EInvalid, "%d sides cannot be compared", len(refs)).Because(muster.ReasonOutOfRange).WithHint("name from 2 to %d platforms or clusters", mostPlatformSides)
	}
	var sides []platform.Side
	err := s.Store.View(ctx, who, func(tx *store.Tx) error {
		var problems []muster.Problem
		for _, ref := range refs {
			side, err := findSide(tx, ref)
			if e := asError(err); e != nil {
				problems = append(problems, e.In("side"))
			} else if err != nil {
				return err
			}
			sides = append(sides, side)
		}
		if problems = spec.Distinct(problems); len(problems) == 1 {
			return muster.Errorf(muster.ENotFound, "%s", problems[0].Message).Because(problems[0].Reason).WithHint("%s", problems[0].Hint)
		}
		if len(problems) > 0 {
			return muster.Errorf(muster.EInvalid, "these cannot be compared").Because(muster.ReasonHasProblems).Listing(problems)
		}
		return nil
	})
	if err != nil {
		return wire.PlatformComparison{}, err
	}
	return platform.Compare(sides), nil
}

func findSide(tx *store.Tx, ref string) (platform.Side, error) {
	name, isPlatform := strings.CutPrefix(ref, "platform:")
	name, isCluster := strings.CutPrefix(name, "cluster:")
	p, noPlatform := findPlatform(tx, name)
	if noPlatform != nil && muster.CodeOf(noPlatform) != muster.ENotFound {
		return platform.Side{}, noPlatform
	}
	if isPlatform {
		return platform.OfPlatform(p), noPlatform
	}
	c, noCluster := tx.FindCluster(name)
	if noCluster != nil && muster.CodeOf(noCluster) != muster.ENotFound {
		return platform.Side{}, noCluster
	}
	switch {
	case noPlatform == nil && noCluster == nil && !isCluster:
		return platform.Side{}, muster.Errorf(muster.EConflict, "there are a platform and a cluster %s", name).Because(muster.ReasonAmbiguous).WithHint("write platform:%s or cluster:%[1]s", name)
	case noPlatform == nil && !isCluster:
		return platform.OfPlatform(p), nil
	case noCluster != nil && isCluster:
		return platform.Side{}, noCluster
	case noCluster != nil:
		return platform.Side{}, muster.Errorf(muster.ENotFound, "there is no platform and no cluster %.64q", name).Because(muster.ReasonNoSuchObject).WithHint("`muster platform list` and `muster list` list them")
	}
	runs, err := tx.ProgramRuns(store.ProgramRunFilter{Cluster: c.ID})
	if err != nil {
		return platform.Side{}, err
	}
	return platform.OfRuns(c.Name, runs, func(name string) bool { _, ok := program.Builtin(name); return ok }), nil
}
