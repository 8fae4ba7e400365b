package script

import (
	"bytes"
	"context"
	"errors"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/siteprogram"
)

const maxOutput = 64 << 10 // bytes kept of what it prints

// call runs the program and returns what it printed.
func (d *driver) call(ctx context.Context, operation string) ([]byte, error) {
	p := siteprogram.Program{Path: d.t.Address.Address, Args: []string{operation}, Env: d.environment(), Most: maxOutput}
	var secret []byte
	if d.t.Secret != nil {
		var err error
		if secret, err = d.t.Secret(ctx); err != nil {
			return nil, muster.Errorf(muster.EUnauth, "its password cannot be fetched").Because(muster.ReasonControllerRefuses).Wrap(err)
		}
		p.Stdin = append(bytes.Clone(secret), '\n')
	}
	out, err := p.Run(ctx)
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, muster.Errorf(muster.ETimeout, "the site's program did not end in time and was killed").Because(muster.ReasonNoAnswer).
			WithHint("run it by hand as docs/operators/power.md says").Wrap(ctx.Err())
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, explain(operation, err, siteprogram.Line(out.Said, secret))
	}
	return out.Out, nil
}
