package script

import (
	"context"
	"errors"
	"os/exec"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/siteprogram"
)

const maxOutput = 4 << 20 // bytes of what it prints: some ten thousand ports

// call runs the program and returns what it printed.
func (s *Switch) call(ctx context.Context, operation string, input []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, s.c.Patience)
	defer cancel()
	p := siteprogram.Program{
		Path: s.c.Program, Args: []string{operation}, Env: append(siteprogram.Environment(), "MUSTER_SWITCH="+s.c.Name), Stdin: input, Most: maxOutput,
	}
	out, err := p.Run(ctx)
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, muster.Errorf(muster.EUnavailable, "the site's program for the switch did not end in time and was killed").
			WithHint("run it by hand as docs/operators/switches.md says").Wrap(ctx.Err())
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, s.explain(operation, err, siteprogram.Line(out.Said, nil))
	case out.Over:
		return nil, nonsense(operation, "it is longer than %d MiB", maxOutput>>20)
	}
	return out.Out, nil
}

// explain makes an error of how the program ended.
func (s *Switch) explain(operation string, err error, said string) error {
	if said != "" {
		said = ": " + said
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return muster.Errorf(muster.EUnavailable, "the site's program for the switch could not be run").
			WithHint("see that %s is there and may be executed by this server", s.c.Program).Wrap(err)
	}
	switch exit.ExitCode() {
	case siteprogram.ExitUnsupported:
		return muster.Errorf(muster.EInvalid, "the site's program for the switch cannot do %q%s", operation, said)
	case siteprogram.ExitRefused:
		return muster.Errorf(muster.EUnauth, "the site's program was refused by the switch%s", said).WithHint("see the account that it uses")
	case siteprogram.ExitBusy:
		return muster.Errorf(muster.EUnavailable, "the site's program for the switch says not now%s", said)
	case siteprogram.ExitUnknown:
		return muster.Errorf(muster.ENotFound, "the site's program knows no such switch%s", said).WithHint("see the name after # in the registrations of its machines")
	}
	return muster.Errorf(muster.EUnavailable, "the site's program for the switch failed at %q (%v)%s", operation, err, said).
		WithHint("run it by hand as docs/operators/switches.md says")
}
