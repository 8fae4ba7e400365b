package daemon

import (
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider/local"
)

// Config says what server to run.
type Config struct {
	// State is the directory that holds everything; made when missing.
	State string
	// Local are the machines to cut from this host.
	Local []local.Slice
	// Oversubscribe allows more local machines than cores.
	Oversubscribe bool
	// Fake is how many machines only pretend.
	Fake int
	// FakeDelay is how long a fake machine takes to boot at most.
	FakeDelay time.Duration
	// Listen is an address for the API over TLS; "" for none.
	Listen string
	// Egress lists what clusters may ask for. Empty: none and proxy.
	Egress []muster.Egress
	// Agent is the agent program that is put into machines. Empty: the file
	// muster-agent beside this program.
	Agent string
	// BootWindow limits how many local machines boot at once. 0: by cores.
	BootWindow int
	Version    string
	Log        *slog.Logger
	Clock      muster.Clock
}

func (c *Config) setDefaults() error {
	if c.State == "" {
		c.State = "/var/lib/muster"
	}
	abs, err := filepath.Abs(c.State)
	if err != nil {
		return err
	}
	c.State = abs
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Clock == nil {
		c.Clock = muster.SystemClock{}
	}
	if c.FakeDelay == 0 {
		c.FakeDelay = 200 * time.Millisecond
	}
	if len(c.Local) > 0 && os.Geteuid() != 0 {
		return muster.Errorf(muster.EForbidden, "local machines need root: namespaces, cgroups and mounts are made").
			WithHint("run it with sudo, or try --fake 8")
	}
	if c.Agent == "" {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		c.Agent = filepath.Join(filepath.Dir(self), "muster-agent")
	}
	if len(c.Local) > 0 {
		if st, err := os.Stat(c.Agent); err != nil || st.IsDir() || st.Mode()&0o111 == 0 {
			return muster.Errorf(muster.EInvalid, "there is no agent program at %s", c.Agent).
				WithHint("build it (make build) or name it with --agent")
		}
	}
	return nil
}
