package local

import (
	"context"
	"errors"
	"os"
	"sync"

	"github.com/muster-hpc/muster"
)

// Destroy kills and cleans every machine, removes every network, and closes
// the provider: nothing of the state directory is left on the host.
func (p *Provider) Destroy(ctx context.Context) error {
	var mu sync.Mutex
	var errs []error
	fail := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		errs = append(errs, err)
	}
	var wg sync.WaitGroup
	for _, m := range p.all(nil) {
		wg.Go(func() {
			if _, err := p.Fence(ctx, m.id); err != nil {
				fail(err)
				return
			}
			if _, err := p.Clean(ctx, m.id); err != nil {
				fail(err)
			}
		})
	}
	wg.Wait()
	nets, err := p.Networks(ctx)
	errs = append(errs, err, p.RemoveNetworks(ctx, nets), p.releaseAllDevices(), p.Close())
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return os.RemoveAll(p.dir)
}

// Running lists the machines that run now, whoever started them.
func (p *Provider) Running() ([]muster.MachineID, error) {
	var out []muster.MachineID
	for _, m := range p.all(nil) {
		alive, err := p.groups.populated(string(m.id))
		if err != nil {
			return nil, err
		}
		if alive {
			out = append(out, m.id)
		}
	}
	return out, nil
}
