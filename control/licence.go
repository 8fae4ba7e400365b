package control

import (
	"context"
	"slices"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// mostLicences is how many licence servers a project may have.
const mostLicences = 32

// LicenceProject lets the nodes of a project's clusters reach a licence server, or not any more.
// Only administrators may: the server is one of the house.
func (s *Service) LicenceProject(ctx context.Context, who muster.Actor, name string, r wire.ProjectLicence) (wire.ProjectUse, error) {
	if err := administrator(who, "allow licence servers"); err != nil {
		return wire.ProjectUse{}, err
	}
	l, err := muster.ParseLicenceServer(r.Server)
	if err != nil {
		return wire.ProjectUse{}, err
	}
	if slices.Contains(s.LicencePortsTaken, l.Port) {
		return wire.ProjectUse{}, muster.Errorf(muster.EInvalid, "port %d is one of Muster's own, by which nodes reach it", l.Port).Because(muster.ReasonBadValue).
			WithHint("have the licence server listen on another port")
	}
	return s.changeProject(ctx, who, name, false, func(_ *store.Tx, p *muster.Project) (string, error) {
		at := slices.Index(p.Licences, l)
		if r.Revoke {
			if at < 0 {
				return "", muster.Errorf(muster.ENotFound, "project %s has no licence server %s", name, l).Because(muster.ReasonNoSuchObject).WithHint("`muster project show %s` lists them", name)
			}
			p.Licences = slices.Delete(slices.Clone(p.Licences), at, at+1)
			return "licence server " + l.String() + " is not reached any more", nil
		}
		// Nodes reach all servers at one address of ours, where the port says which one is meant.
		if i := slices.IndexFunc(p.Licences, func(o muster.LicenceServer) bool { return o.Port == l.Port && o != l }); i >= 0 {
			return "", muster.Errorf(muster.EConflict, "project %s has %s, and a port leads to one server", name, p.Licences[i]).Because(muster.ReasonContradiction).
				WithHint("have one of the two listen on another port, or revoke the other first")
		}
		if at < 0 {
			if len(p.Licences) >= mostLicences {
				return "", muster.Errorf(muster.EInvalid, "project %s has %d licence servers", name, len(p.Licences)).Because(muster.ReasonTooMany).WithHint("revoke one first")
			}
			p.Licences = append(slices.Clone(p.Licences), l)
		}
		return "licence server " + l.String() + " is reached", nil
	})
}

// LicencesOf are the licence servers that the nodes of a project reach.
func LicencesOf(sys *store.Tx, project string) ([]muster.LicenceServer, error) {
	p, _, err := rulesOf(sys, project)
	return p.Licences, err
}
