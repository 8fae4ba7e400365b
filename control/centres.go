package control

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/topology"
	"github.com/muster-hpc/muster/measure/compare"
	"github.com/muster-hpc/muster/store"
)

// centreCertificates are the newest certificates of nodes of a class by which data centres are compared.
const centreCertificates = 400

// centreNotices say of the class of a plan in what its machines in one data centre measure otherwise than those in
// another: they are the same by registration, and not by certificates. What cannot be read is logged: the answer
// is right without.
func (s *Service) centreNotices(ctx context.Context, answer muster.Answer) []string {
	p := answer.Plan
	if p == nil || p.Class == "" {
		return nil
	}
	var out []string
	err := s.Store.View(ctx, muster.System(), func(tx *store.Tx) error {
		t, err := tx.SiteTree()
		if err != nil || t == nil || !severalCentres(t) {
			return err
		}
		machines, err := tx.Site()
		if err != nil {
			return err
		}
		tree := topology.New(t, machines)
		list, err := tx.Certificates(store.CertificateFilter{Class: p.Class, Kind: muster.CertifiesNode, Limit: centreCertificates})
		if err != nil {
			return err
		}
		certs, err := tx.CertificateContents(idsOf(list)...)
		if err != nil {
			return err
		}
		out = centreTexts(p, tree, certs)
		return nil
	})
	if err != nil {
		s.Log.Warn("comparing a class between data centres failed", "class", p.Class, "error", err)
	}
	return out
}

func severalCentres(t *muster.SiteTree) bool {
	n := 0
	for _, s := range t.Stands {
		if s.Kind == muster.StandDataCentre {
			n++
		}
	}
	return n > 1
}

func centreTexts(p *muster.Plan, tree *topology.Tree, certs []muster.Certificate) (out []string) {
	var here []string
	for _, a := range p.Assign {
		if c := tree.Site(a.Machine); c != "" && !slices.Contains(here, c) {
			here = append(here, c)
		}
	}
	slices.Sort(here)
	differ, conditions := compare.Centres(certs, tree.Site)
	for _, c := range conditions {
		out = append(out, fmt.Sprintf("class %s is not the same in all data centres (this plan: %s): %s", p.Class, strings.Join(here, ", "), c))
	}
	for _, d := range differ {
		out = append(out, fmt.Sprintf("machines of class %s are not equally fast in all data centres (this plan: %s): %s", p.Class, strings.Join(here, ", "), d))
	}
	return out
}
