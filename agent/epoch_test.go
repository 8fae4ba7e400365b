package agent_test

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/agent"
	"github.com/muster-hpc/muster/wire"
)

// elder is a server whose epoch changes, as when its address goes to another host and back.
type elder struct {
	*server
	epoch, asked, offs atomic.Int64
	trouble            atomic.Value // string: of the agent
}

func newElder(t *testing.T, epoch int64) *elder {
	t.Helper()
	e := &elder{server: newServer(t)}
	e.epoch.Store(epoch)
	e.trouble.Store("")
	e.answerWith(e.plainly)
	return e
}

func (e *elder) plainly(w http.ResponseWriter, r *http.Request) {
	e.asked.Add(1)
	w.Header().Set(wire.EpochHeader, strconv.FormatInt(e.epoch.Load(), 10))
	e.plain(w, r)
}

// over says that the attempt is over, and that the machine is to go off.
func (e *elder) over(w http.ResponseWriter, _ *http.Request) {
	e.asked.Add(1)
	w.Header().Set(wire.EpochHeader, strconv.FormatInt(e.epoch.Load(), 10))
	w.WriteHeader(http.StatusGone)
	answer(w, wire.Refusal{Error: muster.Errorf(muster.EConflict, "this attempt is over"), PowerOff: true})
}

func (e *elder) start(t *testing.T, n *node, change func(*agent.Config)) (stop func()) {
	t.Helper()
	return start(t, e.server, n, func(c *agent.Config) {
		c.NoWatch = true // every answer is to a question of its own time
		c.Status = func(s agent.Status) { e.trouble.Store(s.Trouble) }
		c.PowerOff = func(context.Context) error { e.offs.Add(1); return nil }
		change(c)
	})
}

// refuses waits until the agent has asked several times and said why it obeys nobody. It
// has gone no further than a generation.
func (e *elder) refuses(t *testing.T, n *node, generation int64) {
	t.Helper()
	before := e.asked.Load()
	eventually(t, "the agent asks on and says why", func() bool {
		return e.asked.Load() > before+3 && strings.Contains(e.trouble.Load().(string), "server of epoch "+strconv.FormatInt(e.epoch.Load(), 10)+",")
	})
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.applied) > 0 && slices.Max(n.applied) > generation || e.offs.Load() != 0 {
		t.Errorf("the generations %d were applied, and the machine went off %d times", n.applied, e.offs.Load())
	}
}

// A server of a lower epoch than one that was obeyed is not, whatever it says; also by an
// agent that was started again. A higher one is.
func TestTheHighestEpochIsObeyed(t *testing.T) {
	t.Parallel()
	e, n, dir := newElder(t, 2), &node{}, agent.Dir(t.TempDir())
	kept := func(c *agent.Config) { c.Store = dir }
	stop := e.start(t, n, kept)
	e.until("ready", ready)
	if b, err := dir.Load("epoch"); err != nil || string(b) != "2\n" {
		t.Fatalf("kept: %q, %v", b, err)
	}
	e.epoch.Store(1)
	e.mu.Lock()
	e.off = true
	e.mu.Unlock()
	e.set(config(2))
	e.refuses(t, n, 1)
	stop()
	stop = e.start(t, n, func(c *agent.Config) { kept(c); c.Bootstrap.Token = "" })
	e.refuses(t, n, 1)
	e.answerWith(e.over)
	e.refuses(t, n, 1)
	stop()
	e.mu.Lock()
	e.off = false
	e.mu.Unlock()
	e.epoch.Store(3)
	e.answerWith(e.plainly)
	e.start(t, n, func(c *agent.Config) { kept(c); c.Bootstrap.Token = "" })
	e.until("the higher one", func(r wire.Report) bool { return ready(r) && r.Generation == 2 })
	if b, err := dir.Load("epoch"); err != nil || string(b) != "3\n" {
		t.Errorf("kept: %q, %v", b, err)
	}
}

// A boot of a later epoch is not given to a server of an earlier one, although its agent
// has never spoken to another; and what a boot before it kept holds for it, too.
func TestABootKnowsItsEpoch(t *testing.T) {
	t.Parallel()
	e, n := newElder(t, 1), &node{}
	e.start(t, n, func(c *agent.Config) { c.Bootstrap.Attempt = muster.FirstAttempt(2) })
	e.refuses(t, n, 0)
	e.epoch.Store(2)
	e.until("its own server", ready)

	e, n = newElder(t, 2), &node{}
	dir := agent.Dir(t.TempDir())
	if err := dir.Save("epoch", []byte("3\n")); err != nil {
		t.Fatal(err)
	}
	e.start(t, n, func(c *agent.Config) { c.Store, c.Bootstrap.Attempt = dir, 2 })
	e.refuses(t, n, 0)
}

// What was kept and cannot be read says nothing: the boot's own number does.
func TestAKeptEpochThatIsNone(t *testing.T) {
	t.Parallel()
	e, n, dir := newElder(t, 2), &node{}, agent.Dir(t.TempDir())
	if err := dir.Save("epoch", []byte("9x")); err != nil {
		t.Fatal(err)
	}
	e.start(t, n, func(c *agent.Config) { c.Store, c.Bootstrap.Attempt = dir, muster.FirstAttempt(2) })
	e.until("ready", ready)
}
