package metal

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider"
)

// Console shows what is known of a machine's boot: what it asked for, what it was given,
// its stages, and why it does not go on. What its firmware and its kernel print is at its
// own console. There is no shell: what runs on it is its users'.
func (p *Provider) Console(_ context.Context, id muster.MachineID, shell bool) (io.ReadWriteCloser, error) {
	u, err := p.unit(id)
	if err != nil {
		return nil, err
	}
	if shell {
		return nil, muster.Errorf(muster.EInvalid, "there is no shell on the bare machine %s but its node's own", id).Because(muster.ReasonNoConsole).
			WithHint("use 'muster ssh', or the console of its management controller")
	}
	ctx, leave := context.WithCancel(p.ctx)
	c := &bootLog{leave: leave}
	p.jobs.Go(func() { p.follow(ctx, u, c) })
	return c, nil
}

// bootLogEvery is how often it is looked whether more happened.
const bootLogEvery = time.Second

// follow prints what happened to a machine in its boot, and then what happens, until that
// boot is over or nobody listens. The next one may be somebody else's.
func (p *Provider) follow(ctx context.Context, u *machineState, c *bootLog) {
	defer c.End()
	states := p.boots.States(u.id)
	if len(states) == 0 {
		c.Print("nothing is known of a boot of " + string(u.id) + " since it was cleaned; ask again while it boots\r\n")
		return
	}
	told, number := map[string]bool{}, states[0].Number
	for len(states) > 0 && states[0].Number == number {
		for _, line := range p.writeBootLog(u, states) {
			if !told[line] {
				told[line] = true
				c.Print(line + "\r\n")
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-p.o.Clock.After(bootLogEvery):
		}
		states = p.boots.States(u.id)
	}
}

// bootLog is a console that only tells.
type bootLog struct {
	provider.ConsoleBuffer
	leave context.CancelFunc
}

// Close ends it.
func (s *bootLog) Close() error {
	s.leave()
	s.End()
	return nil
}

func (*bootLog) Write(b []byte) (int, error) { return len(b), nil }

// writeBootLog is what happened to a machine in these states, the oldest first, one line each.
func (p *Provider) writeBootLog(u *machineState, states []State) []string {
	type line struct {
		at   time.Time
		text string
	}
	var lines []line
	for _, st := range states {
		text := fmt.Sprintf("boot %s: %s", st.Number, st.Kind)
		if st.As != "" {
			text += fmt.Sprintf(" as %s, attempt %d", st.As, st.Attempt)
		}
		lines = append(lines, line{st.Since, text})
	}
	if p.o.BootLog != nil && len(states) > 0 {
		for _, e := range p.o.BootLog(managementOf(u.registration())) {
			if e.At.Before(states[0].Since) {
				continue // of another boot, perhaps another user's
			}
			text := strings.TrimRight(fmt.Sprintf("%s: %s", e.Stage, e.Text), ": ")
			if e.Times > 1 {
				text += fmt.Sprintf(" (%d times)", e.Times)
			}
			lines = append(lines, line{e.At, text})
		}
	}
	for _, st := range states {
		lines = append(lines, line{st.Changed, "step: " + string(st.Step)})
	}
	slices.SortStableFunc(lines, func(a, b line) int { return a.at.Compare(b.at) })
	var out []string
	for _, l := range lines {
		out = append(out, l.at.UTC().Format("15:04:05.000")+" "+l.text)
	}
	for _, st := range states {
		for _, s := range st.Stages {
			out = append(out, fmt.Sprintf("  %8.3f s after its kernel: %s", s.After.Seconds(), s.Name))
		}
		if f := st.Failure; f != nil {
			out = append(out, fmt.Sprintf("%s: FAILED (%s): %s", f.Stage, f.Code, f.Text))
			if f.Hint != "" {
				out = append(out, "  "+f.Hint)
			}
		}
	}
	return out
}
