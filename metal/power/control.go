package power

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/backoff"
)

// Config is what Control is made of.
type Config struct {
	Drivers Drivers
	Deps    Deps
	Times   Times
	// AtOnce is how many controllers are spoken to at the same time; 0: 1024. Those that do
	// not answer hold their place for seconds, and must not keep the others.
	AtOnce int
	// Programs is how many programs of the site run at the same time; 0: 64.
	Programs int
	Log      *slog.Logger // nil: nothing is logged
}

// Control switches machines. It may be used by many at once.
type Control struct {
	cfg      Config
	clock    muster.Clock
	sessions sessions
	slots    chan struct{}
	programs chan struct{}
	locks    machineLocks
}

// NewControl makes one. Close ends its sessions.
func NewControl(cfg Config) *Control {
	if cfg.AtOnce == 0 {
		cfg.AtOnce = 1024
	}
	if cfg.Programs == 0 {
		cfg.Programs = 64
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	cfg.Times = cfg.Times.or(DefaultTimes())
	return &Control{
		cfg: cfg, clock: cfg.Deps.clock(),
		sessions: sessions{all: map[string]*session{}, done: make(chan struct{})},
		slots:    make(chan struct{}, cfg.AtOnce),
		programs: make(chan struct{}, cfg.Programs),
		locks:    machineLocks{busy: map[muster.MachineID]*machineLock{}},
	}
}

// Close ends all sessions. Nothing may be asked of Control any more.
func (c *Control) Close() error {
	close(c.sessions.done)
	c.sessions.wait.Wait()
	return nil
}

// State looks at a machine's power once, with retries.
func (c *Control) State(ctx context.Context, t Target) (Reading, error) {
	var got Reading
	err := c.do(ctx, t, func(ctx context.Context, d Driver) (err error) {
		got, err = d.State(ctx)
		return err
	})
	return got, err
}

// Abilities says what can be done to a machine. EINVALID if its address is
// wrong.
func (c *Control) Abilities(t Target) (Abilities, error) {
	d, err := c.cfg.Drivers.Open(t, c.cfg.Deps)
	if err != nil {
		return Abilities{}, err
	}
	return d.Abilities(), nil
}

// do gives a command, and again as retryRules has it.
func (c *Control) do(ctx context.Context, t Target, f func(context.Context, Driver) error) error {
	for try := 1; ; try++ {
		err := c.once(ctx, t, f)
		if err == nil || try >= c.cfg.Times.Tries || !mayRetry(ctx, err) {
			return tell(t, try, err)
		}
		pause := backoff.After(try, c.cfg.Times.Pause, c.cfg.Times.PauseMost)
		c.cfg.Log.Debug("power command failed, retrying", "machine", t.Machine, "attempt", try, "pause", pause, "error", err)
		if err := c.sleep(ctx, pause); err != nil {
			return err
		}
	}
}

func (c *Control) sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-c.clock.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// tell says which machine an error is about, and how often it was tried.
func tell(t Target, tries int, err error) error {
	var e *muster.Error
	if err == nil || !asError(err, &e) {
		return err
	}
	named := *e
	named.Message = fmt.Sprintf("%s: %s", t.Machine, e.Message)
	if tries > 1 {
		named.Message += fmt.Sprintf(" (%d tries)", tries)
	}
	return &named
}

func timedOut(t Target, after time.Duration) *muster.Error {
	return muster.Errorf(muster.ETimeout, "its %s controller did not answer within %v", t.Address.Kind, after).Because(muster.ReasonNoAnswer).
		WithHint("see that the controller at %s is reachable from this server", t.place())
}
