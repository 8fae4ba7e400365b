package local

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
)

const (
	// stillTime is how long the last process of a machine may take to stand still.
	stillTime = 10 * time.Second
	// initLag is how long a machine's init stands still for longer than its services. Its
	// timers went on: it looks at once which services have missed their watchdog, and by then they
	// have had time to say that they are alive.
	initLag = 300 * time.Millisecond
)

// initScope is where systemd itself runs, below a machine's group.
const initScope = "init.scope"

// freeze stops every process of a machine that runs. Its memory stays.
func (p *Provider) freeze(ctx context.Context, m *machine) error {
	id := string(m.id)
	still, err := p.groups.stand(ctx, id, stillTime)
	switch {
	case err != nil:
	case !still:
		err = muster.Errorf(muster.EUnavailable, "machine %s did not stand still within %s", m.id, stillTime).Because(muster.ReasonCannotFreeze).
			WithHint("a process of it waits for a device or a file server that does not answer")
	default:
		err = p.groups.freezeInit(id, true)
	}
	if err != nil {
		return errors.Join(err, p.groups.freezeInit(id, false), p.groups.freeze(id, false))
	}
	p.changed(m.id)
	return nil
}

// thaw lets a machine go on.
func (p *Provider) thaw(ctx context.Context, m *machine) error {
	id := string(m.id)
	was := p.groups.frozen(id)
	if err := p.groups.freeze(id, false); err != nil {
		return err
	}
	if was {
		select {
		case <-ctx.Done():
		case <-time.After(initLag):
		}
	}
	if err := p.groups.freezeInit(id, false); err != nil {
		return err
	}
	p.changed(m.id)
	return nil
}

// freezeInit freezes a machine's init by itself, where it is systemd.
func (g *groups) freezeInit(id string, on bool) error {
	return g.freeze(filepath.Join(id, initScope), on)
}

// finishThaw lets a machine's init go on where a crash came between it and the rest.
func (g *groups) finishThaw(id string) error {
	b, err := os.ReadFile(g.file(id, "cgroup.freeze"))
	if gone(err) {
		return nil
	}
	if err != nil || strings.TrimSpace(string(b)) != "0" {
		return err
	}
	return g.freezeInit(id, false)
}
