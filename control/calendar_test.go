package control_test

import (
	"sync"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// wallClock shows the time that a test sets.
type wallClock struct {
	muster.SystemClock
	mu  sync.Mutex
	now time.Time
}

func (c *wallClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *wallClock) set(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = at
}

// booked is a site whose clock a test sets.
type booked struct {
	*controltest.Site
	t     *testing.T
	clock *wallClock
}

func newBooked(t *testing.T, machines int) *booked {
	t.Helper()
	clock := &wallClock{now: time.Now().UTC().Truncate(time.Second)}
	return &booked{controltest.Start(t, controltest.Options{Machines: machines, Control: func(c *control.Config) { c.Clock = clock }}), t, clock}
}

func (b *booked) create(text string) (wire.Created, error) {
	b.t.Helper()
	return b.Control.CreateCluster(b.t.Context(), root(), yaml(text+"; head: shared; users: [alice]"))
}

func (b *booked) must(text string, want muster.ClusterPhase) wire.Created {
	b.t.Helper()
	c, err := b.create(text)
	if err != nil || c.Status != string(want) {
		b.t.Fatalf("%s: %s, %v, %+v", text, c.Status, err, c.Answer)
	}
	return c
}

func (b *booked) promote(want int) {
	b.t.Helper()
	if n, err := b.Control.Allocator.Promote(b.t.Context()); err != nil || n != want {
		all, _ := b.Control.Clusters(b.t.Context(), root(), wire.ClusterQuery{})
		for _, c := range all.Clusters {
			b.t.Log(c.Name, c.Status, c.StatusText)
		}
		b.t.Fatalf("%d served instead of %d: %v", n, want, err)
	}
}

func (b *booked) after(d time.Duration) { b.clock.set(b.clock.Now().Add(d)) }

// A promise holds its machines: who comes later gets them only if it is over by then, and
// the machines are given when the time has come, not before; also when the server was down
// at that time, or the clock was set back.
func TestPromiseIsKept(t *testing.T) {
	t.Parallel()
	b := newBooked(t, 2)
	at := b.clock.Now().Add(2 * time.Hour)
	p := b.must("name: p; nodes: 2; walltime: 1h; start: +2h", muster.ClusterReserved)
	if got := shown(t, b.Site, p.ID); !got.StartAt.Equal(at) || got.Promise == nil || len(got.Promise.Plan.Assign) != 2 {
		t.Fatalf("%+v", got)
	}
	b.must("name: short; nodes: 1; walltime: 1h", muster.ClusterBuilding)
	long := b.must("name: long; nodes: 1; walltime: 4h", muster.ClusterQueued)
	if long.Answer.StartAt.Before(at.Add(time.Hour)) {
		t.Errorf("it would start at %s, while both machines are promised", long.Answer.StartAt)
	}
	b.must("name: endless; nodes: 1", muster.ClusterQueued)
	if _, err := b.create("name: q; nodes: 1; walltime: 1h; start: +150m"); muster.ReasonOf(err) != muster.ReasonNotThen {
		t.Errorf("a second promise of the same machines: %v", err)
	}
	if err := b.Store.Update(t.Context(), muster.System(), func(tx *store.Tx) error { return controltest.Finish(tx, shownByName(t, b.Site, "short")) }); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Control.DeleteCluster(t.Context(), root(), "short"); err != nil {
		t.Fatal(err)
	}
	if err := b.Store.Update(t.Context(), muster.System(), func(tx *store.Tx) error { return controltest.GiveBack(tx, shownByName(t, b.Site, "short")) }); err != nil {
		t.Fatal(err)
	}
	b.promote(0)
	b.after(-30 * time.Minute) // the clock is set back, and later forward over the promised time
	b.promote(0)
	if next := b.Control.Allocator.Next(); next.IsZero() || next.After(at) {
		t.Errorf("it looks again at %s", next)
	}
	b.clock.set(at.Add(20 * time.Minute)) // nobody looked at its time
	b.promote(1)
	if got := shown(t, b.Site, p.ID); got.Status != muster.ClusterBuilding {
		t.Errorf("%s %s", got.Status, got.StatusText)
	}
}

func shownByName(t *testing.T, s *controltest.Site, name string) muster.ClusterID {
	t.Helper()
	c, err := s.Control.Cluster(t.Context(), root(), name)
	if err != nil {
		all, err := s.Control.Clusters(t.Context(), root(), wire.ClusterQuery{All: true})
		for _, c := range all.Clusters {
			if c.Name == name {
				return c.ID
			}
		}
		t.Fatal(err)
	}
	return c.ID
}

// When a machine of a promise is lost another takes its place without a word; when there is
// none the promise moves to the first time at which it can be kept, and its people are told.
func TestPromiseLosesMachines(t *testing.T) {
	t.Parallel()
	b := newBooked(t, 3)
	p := b.must("name: p; nodes: 2; walltime: 1h; start: +2h", muster.ClusterReserved)
	later := b.must("name: later; nodes: 1; walltime: 30m; start: +6h", muster.ClusterReserved)
	first := shown(t, b.Site, p.ID)
	lose := func() {
		t.Helper()
		id := shown(t, b.Site, p.ID).Promise.Plan.Assign[0].Machine
		setPhase(t, b.Site, id, muster.MachineMaintenance)
		b.promote(0)
	}
	lose()
	got := shown(t, b.Site, p.ID)
	if !got.StartAt.Equal(first.StartAt) || got.Promise.Moved != 0 || len(got.Notices) != 0 || got.Promise.Plan.Assign[0].Machine == first.Promise.Plan.Assign[0].Machine && got.Promise.Plan.Assign[1].Machine == first.Promise.Plan.Assign[1].Machine {
		t.Errorf("an exchange that is told, or none: %+v", got.Promise)
	}
	lose() // one is left for two
	got = shown(t, b.Site, p.ID)
	if got.Status != muster.ClusterQueued || len(got.Notices) != 1 || got.Notices[0].Code != muster.NoticePromise {
		t.Errorf("%s %+v %+v", got.Status, got.Promise, got.Notices)
	}
	if is := shown(t, b.Site, later.ID); is.Promise == nil || is.Promise.Moved != 0 {
		t.Errorf("another promise moved: %+v", is.Promise)
	}
}

// A promise whose whole time is over before the server is back has failed, and says so.
func TestPromiseIsMissed(t *testing.T) {
	t.Parallel()
	b := newBooked(t, 1)
	p := b.must("name: p; nodes: 1; walltime: 1h; start: +2h", muster.ClusterReserved)
	b.after(4 * time.Hour)
	b.promote(0)
	if got := shown(t, b.Site, p.ID); got.Status != muster.ClusterFailed || muster.ReasonOf(got.Reason) != muster.ReasonPromiseMissed {
		t.Errorf("%s %v", got.Status, got.Reason)
	}
}

// Nobody who waits is delayed by one who comes later, and each starts by the time that it was
// told first, if nobody overstays.
func TestQueueKeepsItsTimes(t *testing.T) {
	t.Parallel()
	b := newBooked(t, 4)
	end := func(name string) {
		t.Helper()
		id := shownByName(t, b.Site, name)
		if _, err := b.Control.DeleteCluster(t.Context(), root(), string(id)); err != nil {
			t.Fatal(err)
		}
		if err := b.Store.Update(t.Context(), muster.System(), func(tx *store.Tx) error { return controltest.GiveBack(tx, id) }); err != nil {
			t.Fatal(err)
		}
	}
	b.must("name: a; nodes: 4; walltime: 1h", muster.ClusterBuilding)
	told := map[string]time.Time{}
	for _, q := range []string{"name: b; nodes: 3; walltime: 2h", "name: c; nodes: 4; walltime: 1h", "name: d; nodes: 1; walltime: 1h", "name: e; nodes: 1; walltime: 10h"} {
		c := b.must(q, muster.ClusterQueued)
		told[c.Name] = c.Answer.StartAt
	}
	b.promote(0)
	for name, at := range told {
		if got := shown(t, b.Site, shownByName(t, b.Site, name)); got.StartAt.IsZero() || got.StartAt.After(at) {
			t.Errorf("%s was told %s, then %s", name, at, got.StartAt)
		}
	}
	if !told["d"].Before(told["c"]) {
		t.Errorf("the short one does not go before the large one: %v", told)
	}
	b.after(30 * time.Minute)
	end("a") // early
	b.promote(2)
	for name, at := range told {
		got := shown(t, b.Site, shownByName(t, b.Site, name))
		if got.Status == muster.ClusterQueued && got.StartAt.After(at) {
			t.Errorf("%s was told %s, and now %s", name, at, got.StartAt)
		}
	}
}

// A request does not wait for ever: its people are told a day before it is ended.
func TestRequestThatWaitsTooLong(t *testing.T) {
	t.Parallel()
	b := newBooked(t, 1)
	b.must("name: holds; nodes: 1", muster.ClusterBuilding)
	waits := b.must("name: waits; nodes: 1", muster.ClusterQueued)
	got := shown(t, b.Site, waits.ID)
	if got.Next == "" || got.ETAUnknown == "" || !got.Deadline.After(b.clock.Now().Add(29*24*time.Hour)) {
		t.Fatalf("%q, %q, %s", got.Next, got.ETAUnknown, got.Deadline)
	}
	b.clock.set(got.Deadline.Add(-23 * time.Hour))
	b.promote(0)
	b.promote(0)
	if got = shown(t, b.Site, waits.ID); len(got.Notices) != 1 || got.Notices[0].Code != muster.NoticeOverdue || got.Status != muster.ClusterQueued {
		t.Fatalf("%s, %+v", got.Status, got.Notices)
	}
	b.clock.set(got.Deadline)
	b.promote(0)
	if got = shown(t, b.Site, waits.ID); got.Status != muster.ClusterFailed || muster.ReasonOf(got.Reason) != muster.ReasonWaitedTooLong {
		t.Errorf("%s, %v", got.Status, got.Reason)
	}
}

// promoteAny gives machines to whoever is due.
func (b *booked) promoteAny() {
	b.t.Helper()
	for {
		n, err := b.Control.Allocator.Promote(b.t.Context())
		if err != nil {
			b.t.Fatal(err)
		}
		if n == 0 {
			return
		}
	}
}

// gone gives the machines of a deleted cluster back.
func (b *booked) gone(id muster.ClusterID) {
	b.t.Helper()
	err := b.Store.Update(b.t.Context(), muster.System(), func(tx *store.Tx) error { return controltest.GiveBack(tx, id) })
	if err != nil {
		b.t.Fatal(err)
	}
}
