package configure

import (
	"context"
	"errors"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/muster-hpc/muster/internal/nodeset"
)

// A scheduler that shows a node as idle has heard its slurmd. Whether a job starts there is
// another question, which its first user should not be the one to find out: so the head has
// something start on every node before it tells of it, with everything that the start of a
// job needs: munge on both, the spool directory, the launch, what is printed coming back.
//
// It is no job: nothing is queued, no number is given, accounting does not hear of it. So
// it can also be tried on nodes that the scheduler gives no jobs to.
const (
	// trialTime bounds one trial, trialEach is for every node of it.
	trialTime = 10 * time.Second
	trialEach = 5 * time.Millisecond
	// trialsTime bounds all of which one consists.
	trialsTime = 3 * time.Minute
	// trialMoment is how long the watch of the scheduler stands still for it.
	trialMoment = time.Second
	// Nodes where it failed are tried again, ever more seldom.
	trialPause    = 250 * time.Millisecond
	trialPauseMax = time.Minute
	// trialAlone is how many nodes are tried alone, and trialsAtOnce together, to find
	// those by which a trial failed.
	trialAlone   = 64
	trialsAtOnce = 8
	// trialRelease is the first release in which this is possible on nodes that come
	// and go: older ones know their addresses only within an allocation.
	trialRelease = 2311
)

// trials is which nodes have shown that jobs start on them. One goroutine at a time uses it.
type trials struct {
	passed, failed map[string]bool
	doubted        map[string]bool // nodes that Slurm took out of use
	errand         errand[trialResult]
	tries          int // in a row that did not pass everywhere
	next           time.Time
	impossible     bool // this Slurm cannot
}

// trialResult is what came of one. Nodes that are in neither list were not tried.
type trialResult struct {
	passed, failed []string
	err            error
}

// trusts reports whether nothing speaks against giving the node jobs again.
func (t *trials) trusts(node string) bool { return !t.doubted[node] || t.passed[node] || t.impossible }

// due is where jobs have to start before users' may: nodes that are idle, and those that
// are kept from jobs because none started there, or that Slurm took out of use. One that
// runs jobs shows it by that. What is known of a node that went away is forgotten.
func (k *controller) due(is map[string]slurmNode) []string {
	t := &k.c.trials
	if t.passed == nil {
		t.passed, t.failed, t.doubted = map[string]bool{}, map[string]bool{}, map[string]bool{}
		t.impossible = release(k.cfg.Slurm) < trialRelease
	}
	want := wantedNodes(k.cfg, k.ownDown)
	there := func(name string) bool {
		n, known := is[name]
		w, wanted := want[name]
		return known && wanted && !w.down && usable(n.base) && !n.has("not_responding")
	}
	for _, m := range []map[string]bool{t.passed, t.failed, t.doubted} {
		maps.DeleteFunc(m, func(name string, _ bool) bool { return !there(name) })
	}
	var list []string
	for _, name := range slices.Sorted(maps.Keys(want)) {
		n := is[name]
		doubted := n.has("drain") && n.bySlurm()
		switch {
		case !there(name):
			continue
		case doubted && !t.doubted[name]:
			t.doubted[name] = true
			delete(t.passed, name)
		case !doubted:
			delete(t.doubted, name)
		}
		if !t.passed[name] && !n.busy() && (n.word() == "idle" || doubted || n.reason == reasonMute) {
			list = append(list, name)
		}
	}
	return list
}

// try starts jobs where none has started yet, and returns those nodes of the list where
// that has not succeeded so far.
func (k *controller) try(ctx context.Context, list []string) (left []string) {
	t := &k.c.trials
	if t.impossible {
		return nil
	}
	if !t.errand.running() && (len(list) == 0 || k.c.clock.Now().Before(t.next)) {
		return list
	}
	nodes := slices.Clone(list)
	t.errand.send(ctx, k.c.clock, trialsTime, func(ctx context.Context) trialResult { return k.c.trial(ctx, nodes) })
	if r, came := t.errand.wait(ctx, k.c.clock, trialMoment); came && ctx.Err() == nil {
		k.judge(r)
	}
	return slices.DeleteFunc(nodes, func(name string) bool { return t.impossible || t.passed[name] })
}

// judge takes what came of a trial.
func (k *controller) judge(r trialResult) {
	t := &k.c.trials
	if cannot(r.err) {
		k.c.log.Warn("test job unavailable", "error", r.err)
		t.impossible = true
		return
	}
	for _, name := range r.passed {
		t.passed[name] = true
		if t.failed[name] {
			k.c.log.Info("test job succeeded again", "node", name)
		}
		delete(t.failed, name)
	}
	for _, name := range r.failed {
		if !t.failed[name] {
			k.c.log.Warn("test job failed", "node", name, "error", r.err)
		}
		t.failed[name] = true
	}
	if r.err == nil {
		t.tries, t.next = 0, time.Time{}
		return
	}
	t.next = k.c.clock.Now().Add(min(trialPause<<min(t.tries, 8), trialPauseMax))
	t.tries++
}

// cannot reports whether a trial failed because there is no such thing here.
func cannot(err error) bool {
	return err != nil && (errors.Is(err, exec.ErrNotFound) || strings.Contains(err.Error(), "unrecognized option") || strings.Contains(err.Error(), "invalid option"))
}

// trial has something start on nodes: on all at once, and on those where it did not, each
// alone, for one may have kept others from it.
func (c *Configurer) trial(ctx context.Context, nodes []string) trialResult {
	passed, err := c.startOn(ctx, nodes)
	r := trialResult{passed: passed, err: err}
	left := slices.DeleteFunc(slices.Clone(nodes), func(n string) bool { return slices.Contains(passed, n) })
	switch {
	case errors.Is(ctx.Err(), context.Canceled): // nobody asks any more
		return trialResult{}
	case len(left) == 0 || cannot(err):
		return r
	case len(nodes) == 1:
		r.failed = left
		return r
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	places := make(chan struct{}, trialsAtOnce)
	for _, name := range left[:min(len(left), trialAlone)] {
		places <- struct{}{}
		all.Go(func() {
			one, err := c.startOn(ctx, []string{name})
			<-places
			mu.Lock()
			defer mu.Unlock()
			if len(one) > 0 {
				r.passed = append(r.passed, name)
				return
			}
			if ctx.Err() == nil {
				r.failed, r.err = append(r.failed, name), err
			}
		})
	}
	all.Wait()
	if errors.Is(ctx.Err(), context.Canceled) {
		return trialResult{}
	}
	if len(r.failed) == 0 && len(r.passed) == len(nodes) {
		r.err = nil
	} else if r.err == nil {
		r.err = errors.New("not all nodes answered")
	}
	return r
}

// startOn makes every node print its name, as an account of the system, and returns those
// that did.
func (c *Configurer) startOn(ctx context.Context, nodes []string) ([]string, error) {
	set, err := nodeset.Of(nodes...)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, trialTime+time.Duration(len(nodes))*trialEach)
	defer cancel()
	out, err := c.run.Run(ctx, "", "setpriv", "--reuid=slurm", "--regid=slurm", "--clear-groups",
		"srun", "--quiet", "--no-allocate", "--nodelist="+set.String(), "--input=none", "--chdir=/", "printenv", "SLURMD_NODENAME")
	asked := make(map[string]bool, len(nodes))
	for _, n := range nodes {
		asked[n] = true
	}
	var passed []string
	for _, n := range strings.Fields(out) {
		if asked[n] {
			asked[n] = false
			passed = append(passed, n)
		}
	}
	if err == nil && len(passed) < len(nodes) {
		err = errors.New("not all nodes answered")
	}
	return passed, err
}
