package control_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/raced"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// classes gives machines classes, in their order.
func (b *booked) classes(names ...string) {
	b.t.Helper()
	err := b.Store.Update(b.t.Context(), muster.System(), func(tx *store.Tx) error {
		list, err := tx.Machines(store.MachineFilter{})
		for i, m := range list {
			m.Facts.Class = names[i]
			if err := tx.PutMachine(m, ""); err != nil {
				return err
			}
		}
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *booked) clusters() (list []muster.Cluster) {
	b.t.Helper()
	err := b.Store.View(b.t.Context(), muster.System(), func(tx *store.Tx) (err error) {
		list, err = tx.Clusters(store.ClusterFilter{Living: true})
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return list
}

func (b *booked) promise(id muster.ClusterID) muster.Promise {
	b.t.Helper()
	for _, c := range b.clusters() {
		if c.ID == id && c.Promise != nil {
			return *c.Promise
		}
	}
	b.t.Fatalf("%s has no promise", id)
	return muster.Promise{}
}

// Whoever is promised a machine that somebody needs gets another one at the same time.
func TestPromisesMoveAside(t *testing.T) {
	t.Parallel()
	b := newBooked(t, 2)
	b.classes("x", "y")
	any := b.must("name: any; nodes: 1; walltime: 1h; start: +3h", muster.ClusterReserved)
	was := b.promise(any.ID)
	wanted := map[string]string{"x": "y", "y": "x"}[was.Plan.Class]
	special := b.must("name: special; nodes: 1; walltime: 1h; start: +3h; machine: {class: "+was.Plan.Class+"}", muster.ClusterReserved)
	now := b.promise(any.ID)
	if now.Plan.Class != wanted || !now.Start.Equal(was.Start) || now.Moved != 0 || !now.First.IsZero() {
		t.Fatalf("%+v, was %+v", now, was)
	}
	if got := shown(t, b.Site, any.ID); len(got.Notices) != 0 {
		t.Errorf("its people are told: %+v", got.Notices)
	}
	// A dry run says what the request would be told, and moves nothing.
	third := yaml("name: third; nodes: 1; walltime: 1h; start: +3h; head: shared; users: [alice]")
	if _, err := b.Control.CreateCluster(t.Context(), root(), third); muster.ReasonOf(err) != muster.ReasonNotThen {
		t.Errorf("a third at that time: %v", err)
	}
	if p := b.promise(special.ID); p.Plan.Class != was.Plan.Class {
		t.Errorf("%+v", p)
	}
	// Near its time it stays.
	b.clock.set(now.Start.Add(-time.Duration(now.Lead) - 30*time.Second))
	if _, err := b.Control.DeleteCluster(t.Context(), root(), "special"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.create("name: late; nodes: 1; walltime: 5h; machine: {class: " + wanted + "}; queue: false"); muster.CodeOf(err) != muster.ENoCapacity {
		t.Errorf("%v", err)
	}
}

// Who wants machines now, or for longer, gets them if promises can go elsewhere.
func TestPromisesMakeRoomNow(t *testing.T) {
	t.Parallel()
	b := newBooked(t, 2)
	b.classes("x", "y")
	promised := b.must("name: promised; nodes: 1; walltime: 1h; start: +2h", muster.ClusterReserved)
	class := b.promise(promised.ID).Plan.Class
	here := b.must("name: here; nodes: 1; walltime: 8h; machine: {class: "+class+"}", muster.ClusterBuilding)
	if now := b.promise(promised.ID); now.Plan.Class == class {
		t.Fatalf("%+v", now)
	}
	// Its machine is needed for both now.
	if _, err := b.create("name: there; nodes: 1; walltime: 8h; queue: false"); muster.CodeOf(err) != muster.ENoCapacity {
		t.Errorf("%v", err)
	}
	_ = here
}

func TestPromisesMakeRoomForMoreTime(t *testing.T) {
	t.Parallel()
	b := newBooked(t, 2)
	b.must("name: one; nodes: 1; walltime: 1h", muster.ClusterBuilding)
	b.must("name: two; nodes: 1; walltime: 1h", muster.ClusterBuilding)
	for _, name := range []string{"one", "two"} {
		b.ready(name, time.Hour)
	}
	promised := b.must("name: promised; nodes: 1; walltime: 1h; start: +4h", muster.ClusterReserved)
	holder := b.holder(b.promise(promised.ID).Plan.Assign[0].Machine)
	other := map[string]string{"one": "two", "two": "one"}[holder]
	if _, err := b.Control.Extend(t.Context(), root(), holder, wire.ExtendRequest{By: "8h"}); err != nil {
		t.Fatal(err)
	}
	p := b.promise(promised.ID)
	if b.holder(p.Plan.Assign[0].Machine) != other {
		t.Errorf("it did not move: %+v", p)
	}
	if _, err := b.Control.Extend(t.Context(), root(), other, wire.ExtendRequest{By: "8h"}); muster.ReasonOf(err) != muster.ReasonPromisedAway {
		t.Errorf("%v", err)
	}
}

// holder is the name of the cluster that has a machine.
func (b *booked) holder(id muster.MachineID) (name string) {
	b.t.Helper()
	err := b.Store.View(b.t.Context(), muster.System(), func(tx *store.Tx) error {
		m, err := tx.Machine(id)
		if err != nil || m.Cluster == "" {
			return err
		}
		c, err := tx.Cluster(m.Cluster)
		name = c.Name
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return name
}

// ready makes a cluster that is being built ready, until a time.
func (b *booked) ready(name string, walltime time.Duration) {
	b.t.Helper()
	err := b.Store.Update(b.t.Context(), muster.System(), func(tx *store.Tx) error {
		c, err := tx.FindCluster(name)
		if err != nil || c.Phase != muster.ClusterBuilding {
			return err
		}
		c.Expires = b.clock.Now().Add(walltime)
		if c.Promise != nil {
			c.Expires, c.Promise = c.Promise.End, nil
		}
		for _, p := range []muster.ClusterPhase{muster.ClusterValidating, muster.ClusterReady} {
			c.Phase = p
			if err := tx.PutCluster(c, ""); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

// Whatever is asked, in whatever order: no machine is promised twice at any time, no promise
// moves in time, no request that waits is delayed by a later one, and the same question has
// the same answer. MUSTER_CALENDAR_SEED runs one seed alone.
func TestCalendarProperties(t *testing.T) {
	t.Parallel()
	seeds, first := 12, rand.Uint64N(1<<32)
	if testing.Short() || raced.Enabled {
		seeds = 3
	}
	if s := os.Getenv("MUSTER_CALENDAR_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seeds, first = 1, n
	}
	for i := range uint64(seeds) {
		t.Run(fmt.Sprint(first+i), func(t *testing.T) {
			t.Parallel()
			calendarProperties(t, first+i)
		})
	}
}

func calendarProperties(t *testing.T, seed uint64) {
	chance := rand.New(rand.NewPCG(seed, 3))
	b := newBooked(t, 6)
	b.classes("x", "x", "x", "y", "y", "y")
	starts := map[muster.ClusterID]time.Time{} // promised
	moved := 0
	plans := map[muster.ClusterID][]muster.Assignment{}
	var estimates map[muster.ClusterID]time.Time
	look := func(created bool) {
		t.Helper()
		list := b.clusters()
		type use struct {
			name       string
			take, give time.Time
		}
		uses := map[muster.MachineID][]use{}
		for _, c := range list {
			p := c.PromiseAhead()
			if p == nil {
				continue
			}
			if at, known := starts[c.ID]; known && !at.Equal(p.Start) {
				t.Fatalf("the promise of %s moved from %s to %s", c.Name, at, p.Start)
			}
			starts[c.ID] = p.Start
			if was := plans[c.ID]; was != nil && !slices.Equal(was, p.Plan.Assign) {
				moved++
				t.Logf("%s: %s moved from %v to %v", b.clock.Now().Format(time.TimeOnly), c.Name, was, p.Plan.Assign)
			}
			plans[c.ID] = p.Plan.Assign
			for _, a := range p.Plan.Assign {
				uses[a.Machine] = append(uses[a.Machine], use{c.Name, p.Start.Add(-time.Duration(p.Lead)), p.End})
			}
		}
		err := b.Store.View(t.Context(), muster.System(), func(tx *store.Tx) error {
			machines, err := tx.Machines(store.MachineFilter{})
			for _, m := range machines {
				if m.Cluster == "" {
					continue
				}
				c, err := tx.Cluster(m.Cluster)
				if err != nil {
					return err
				}
				end := c.Expires
				if end.IsZero() {
					end = b.clock.Now()
				}
				uses[m.ID] = append(uses[m.ID], use{c.Name, b.clock.Now(), end})
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for id, list := range uses {
			slices.SortFunc(list, func(x, y use) int { return x.take.Compare(y.take) })
			for i := 1; i < len(list); i++ {
				if list[i].take.Before(list[i-1].give) {
					b.tell(list[i-1].name, list[i].name)
					t.Fatalf("machine %s is for %s from %s to %s and for %s from %s", id, list[i-1].name, list[i-1].take, list[i-1].give, list[i].name, list[i].take)
				}
			}
		}
		now := map[muster.ClusterID]time.Time{}
		for _, c := range b.clusters() {
			if c.Phase != muster.ClusterQueued {
				continue
			}
			e, ok := b.Control.Allocator.Estimate(c.ID)
			if !ok {
				continue
			}
			now[c.ID] = e.StartAt
			if was, known := estimates[c.ID]; created && known && !was.IsZero() && (e.StartAt.IsZero() || e.StartAt.After(was.Add(time.Second))) {
				t.Fatalf("%s should have started at %s, and at %s after a later request", c.Name, was, e.StartAt)
			}
		}
		estimates = now
	}
	for step := range 60 {
		created := false
		list := b.clusters()
		some := func() muster.Cluster { return list[chance.IntN(len(list))] }
		switch n := chance.IntN(10); {
		case n < 6 || len(list) == 0:
			text := fmt.Sprintf("name: c%d; nodes: %d; walltime: %dh", step, 1+chance.IntN(3), 1+chance.IntN(4))
			if class := []string{"", "x", "y"}[chance.IntN(3)]; class != "" {
				text += "; machine: {class: " + class + "}"
			}
			switch chance.IntN(4) {
			case 0:
				text += fmt.Sprintf("; start: +%dm", 30*(1+chance.IntN(16)))
			case 1:
				text += "; start: earliest"
			}
			call := yaml(text + "; head: shared; users: [alice]")
			call.DryRun, call.Key = true, fmt.Sprint("step ", step) // its ID, which seeds the choice of machines
			one, _ := b.Control.CreateCluster(t.Context(), root(), call)
			two, _ := b.Control.CreateCluster(t.Context(), root(), call)
			if x, y := answer(t, one), answer(t, two); x != y {
				t.Fatalf("asked twice: %s\n%s", x, y)
			}
			call.DryRun = false
			made, err := b.Control.CreateCluster(t.Context(), root(), call)
			if made.Answer.Verdict != one.Answer.Verdict || err == nil && !made.Answer.StartAt.Equal(one.Answer.StartAt) {
				t.Fatalf("a dry run says %s at %s, the request %s at %s: %v", one.Answer.Verdict, one.Answer.StartAt, made.Answer.Verdict, made.Answer.StartAt, err)
			}
			created = true
		case n < 7:
			_, _ = b.Control.Extend(t.Context(), root(), string(some().ID), wire.ExtendRequest{By: fmt.Sprintf("%dh", 1+chance.IntN(3))})
		case n < 8:
			id := some().ID
			if _, err := b.Control.DeleteCluster(t.Context(), root(), string(id)); err == nil {
				b.gone(id)
			}
		default:
			b.after(time.Duration(chance.IntN(90)) * time.Minute)
			for _, c := range b.clusters() {
				if c.Phase == muster.ClusterReady && !b.clock.Now().Before(c.Expires) {
					if _, err := b.Control.DeleteCluster(t.Context(), root(), string(c.ID)); err != nil {
						t.Fatal(err)
					}
					b.gone(c.ID)
				}
			}
			b.settle()
			for _, c := range b.clusters() {
				if p := c.PromiseAhead(); p != nil && b.clock.Now().After(p.Start.Add(time.Minute)) {
					b.tell(c.Name)
					t.Fatalf("%s was promised %s and has nothing at %s", c.Name, p.Start, b.clock.Now())
				}
			}
		}
		b.settle()
		look(created)
	}
	// Nobody asks for more: whoever waits starts within the time that all would take one after
	// the other, each with its lead and turn, after the last promise.
	bound, last := time.Duration(0), b.clock.Now()
	for _, c := range b.clusters() {
		bound += time.Duration(c.Spec.Walltime) + time.Hour
		if p := c.PromiseAhead(); p != nil && p.End.After(last) {
			last = p.End
		}
	}
	for end := last.Add(bound); ; b.after(10 * time.Minute) {
		for _, c := range b.clusters() {
			if c.Phase == muster.ClusterReady && !b.clock.Now().Before(c.Expires) {
				if _, err := b.Control.DeleteCluster(t.Context(), root(), string(c.ID)); err != nil {
					t.Fatal(err)
				}
				b.gone(c.ID)
			}
		}
		b.settle()
		waiting := slices.DeleteFunc(b.clusters(), func(c muster.Cluster) bool { return c.Phase != muster.ClusterQueued })
		if len(waiting) == 0 {
			break
		}
		if b.clock.Now().After(end) {
			t.Fatalf("%s still waits at %s; all would be over by %s", waiting[0].Name, b.clock.Now(), end)
		}
	}
	t.Logf("%d promises, machines exchanged %d times", len(starts), moved)
}

// answer is what was said, without when.
func answer(t *testing.T, c wire.Created) string {
	t.Helper()
	if c.Answer.Plan != nil {
		p := *c.Answer.Plan
		p.Made = time.Time{}
		c.Answer.Plan = &p
	}
	c.ID, c.Cluster = "", nil
	text, err := json.Marshal(c.Answer)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// tell logs what happened to clusters.
func (b *booked) tell(names ...string) {
	_ = b.Store.View(b.t.Context(), muster.System(), func(tx *store.Tx) error {
		list, err := tx.Audits(store.AuditFilter{Limit: 5000})
		for _, a := range list {
			for _, c := range b.clusters() {
				if c.ID == a.Cluster && slices.Contains(names, c.Name) && a.Kind == muster.AuditCluster {
					b.t.Logf("%s %s: %s>%s %s", a.At.Format(time.TimeOnly), c.Name, a.From, a.To, a.Text)
				}
			}
		}
		return err
	})
}

// settle starts whoever can start, until nobody can: they are ready at once.
func (b *booked) settle() {
	b.t.Helper()
	for again := true; again; {
		b.promoteAny()
		again = false
		for _, c := range b.clusters() {
			if c.Phase == muster.ClusterBuilding {
				b.ready(string(c.ID), time.Duration(c.Spec.Walltime))
				again = true
			}
		}
	}
}
