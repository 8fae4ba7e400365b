package control

import (
	"slices"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/measure/analysis"
	"github.com/muster-hpc/muster/store"
)

// peaks are what theory allows the cores of cells.
type peaks struct {
	tx       *store.Tx
	launches []muster.ExperimentLaunch
	err      error
}

// of is the peak of so many cores like those on which a cell ran last, in double precision. Clock
// and units are known of machines that were measured. Nil: they are not, or nodes differ.
func (p *peaks) of(cell, cores int) *muster.Reference {
	if p.err != nil {
		return nil
	}
	for _, l := range slices.Backward(p.launches) {
		if l.Cell != cell || l.State != muster.ProgramRunPassed || l.Run == "" {
			continue
		}
		run, err := p.tx.ProgramRun(l.Run)
		if err != nil {
			p.failed(err)
			return nil
		}
		if len(run.Machines) == 0 || slices.Contains(run.Conditions.Differ, "processor") {
			return nil
		}
		rows, err := p.tx.Certificates(store.CertificateFilter{Machine: run.Machines[0], Kind: muster.CertifiesNode, Limit: 1})
		if err != nil || len(rows) == 0 {
			p.failed(err)
			return nil
		}
		certs, err := p.tx.CertificateContents(rows[0].ID)
		if err != nil || len(certs) == 0 {
			p.failed(err)
			return nil
		}
		c := certs[0].Conditions
		c.Cores = cores
		return analysis.Peak(c, 0)
	}
	return nil
}

// failed notes an error. What is not there, or not for the caller, is not known.
func (p *peaks) failed(err error) {
	if code := muster.CodeOf(err); err != nil && code != muster.ENotFound && code != muster.EForbidden {
		p.err = err
	}
}
