package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/atomicfile"
	"github.com/muster-hpc/muster/internal/document"
	"github.com/muster-hpc/muster/vm/function"
	"github.com/muster-hpc/muster/vm/hugepages"
)

// vmNote is what is remembered of a virtual machine, in its directory: how it is to be, and which huge pages and which
// virtual function were taken for it. It is written before anything of that is done, and goes with the machine.
type vmNote struct {
	Plan  muster.VMPlan     `json:"plan"`
	Pages []hugepages.Taken `json:"pages,omitempty"`
	// Function is its message card; nil: a tap is. MTU is what that card carries.
	Function *function.Taken `json:"function,omitempty"`
	MTU      int             `json:"mtu,omitempty"`
	// Missed are settings that could not be made.
	Missed []muster.VMFact `json:"missed,omitempty"`
}

const vmNoteDoc document.Kind[vmNote] = "local-vm/1"

func (p *Provider) vmNotePath(id muster.MachineID) string {
	return filepath.Join(p.vmDir(id), "plan.json")
}

// saveVMNote writes it so that a reader sees the old or the new one. The end of the host is the end of the
// machine and of its pages, so nothing is synced.
func (p *Provider) saveVMNote(id muster.MachineID, n *vmNote) error {
	b, err := vmNoteDoc.Encode(n)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(p.vmDir(id), 0o700); err != nil {
		return err
	}
	return atomicfile.ReplaceVolatile(p.vmNotePath(id), b, 0o600)
}

// loadVMNote reads it; nil if there is none.
func (p *Provider) loadVMNote(id muster.MachineID) (*vmNote, error) {
	path := p.vmNotePath(id)
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil //nolint:nilnil // there is none
	}
	if err != nil {
		return nil, err
	}
	n, err := vmNoteDoc.Decode(path, b)
	return &n, err
}

// givePages gives back the huge pages of a virtual machine whose QEMU has ended.
func (p *Provider) givePages(id muster.MachineID) error {
	n, err := p.loadVMNote(id)
	if err != nil || n == nil || len(n.Pages) == 0 {
		return err
	}
	return hugepages.This().Give(n.Pages, func(list []hugepages.Taken) error {
		n.Pages = list
		return p.saveVMNote(id, n)
	})
}

// settlePages finds out which of the huge pages that an earlier server was about to take, or to give back, are still taken.
// It has to know of all machines before one of them is ended.
func (p *Provider) settlePages() error {
	var errs []error
	for _, m := range p.all(nil) {
		n, err := p.loadVMNote(m.id)
		if err == nil && n != nil && slices.ContainsFunc(n.Pages, func(t hugepages.Taken) bool { return !t.Done }) {
			if n.Pages, err = hugepages.This().Settle(n.Pages); err == nil {
				err = p.saveVMNote(m.id, n)
			}
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("machine %s: %w", m.id, err))
		}
	}
	return errors.Join(errs...)
}
