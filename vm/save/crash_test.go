package save_test

import (
	"context"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/muster-hpc/muster/vm/save"
)

// disk is a journal that lasts.
type disk struct {
	r save.Record
	p *pretended
}

func (d *disk) Get(context.Context) (save.Record, error) { return d.r, nil }

// Put may be cut short before the record is durable, or after.
func (d *disk) Put(_ context.Context, r save.Record) error {
	d.p.mu.Lock()
	defer d.p.mu.Unlock()
	if d.p.killed() {
		return errKilled
	}
	d.r = r
	if d.p.killed() {
		return errKilled
	}
	return nil
}

// TestCrashes kills the server at every point of a save and a resume, and has calls fail and machines die besides. Whatever
// happens: the cluster lives, or is saved as a whole; what was saved goes on once, with the locks that it had; nothing is ended that runs.
// MUSTER_CRASH_SEED=n runs one schedule alone.
func TestCrashes(t *testing.T) {
	t.Parallel()
	first, count := uint64(time.Now().UnixNano()&0xffffffff), uint64(1000)
	if s := os.Getenv("MUSTER_CRASH_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		first, count = n, 1
	}
	ends := map[save.Phase]int{}
	for seed := first; seed < first+count && !t.Failed(); seed++ {
		schedule(t, seed, ends)
	}
	t.Logf("from %d: %v", first, ends)
	if count > 1 && (ends[save.Live] == 0 || ends[save.Saved] == 0 || ends["went on"] == 0 || ends["lost"] == 0 || ends["given up"] == 0) {
		t.Errorf("not everything happened: %v", ends)
	}
}

func schedule(t *testing.T, seed uint64, ends map[save.Phase]int) {
	chance := rand.New(rand.NewPCG(seed, 3))
	w := newWorld("n01", "n02", "n03")
	p := &pretended{world: w, chance: chance, spent: map[[2]any]bool{}, sequence: true}
	switch chance.IntN(3) {
	case 1:
		p.fails = 0.1
	case 2:
		p.fails, p.deaths = 0.02, 0.03
	}
	d := &disk{p: p}
	q := &save.Sequence{Machines: p, Volumes: p, Journal: d, AtOnce: 1}
	nodes := []save.Node{{Name: "n01", Head: true}, {Name: "n02"}, {Name: "n03"}}
	dead := func() bool { return p.left != nil && *p.left < 0 }
	// rest runs lives of the server until the sequence rests.
	rest := func() {
		for range 400 {
			if p.left == nil || dead() {
				n := 1 + chance.IntN(25)
				p.left = &n
				w.longer() // nobody starts the server again at once
			}
			if p.fails > 0 && chance.IntN(5) == 0 {
				w.longer()
			}
			before := d.r
			phase, _ := q.Step(t.Context())
			check(t, seed, before, d.r, w)
			if !dead() && phase.Rests() {
				return
			}
			if p.fails > 0 && chance.IntN(60) == 0 {
				p.fails, p.deaths = 0, 0 // whatever it was is over
			}
		}
		t.Fatalf("seed %d: no end in sight: %+v", seed, d.r)
	}
	for round := range 3 {
		p.left = nil
		if err := q.Save(t.Context(), nodes); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		rest()
		for tries := 0; d.r.Phase == save.Saved && tries < 50; tries++ {
			ends[save.Saved]++
			for _, n := range nodes {
				if w.m[n.Name].status != save.Gone || w.files[n.Name] == nil {
					t.Fatalf("seed %d, round %d: saved, and %s is %+v with %+v", seed, round, n.Name, w.m[n.Name], w.files[n.Name])
				}
			}
			p.left = nil
			w.longer()
			if err := q.Resume(t.Context()); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			rest()
			if d.r.Phase == save.Saved {
				ends["given up"]++
				p.deaths, p.fails = 0, 0
			}
		}
		if d.r.Phase != save.Live {
			t.Fatalf("seed %d: %+v", seed, d.r)
		}
		ends[save.Live]++
		if w.nfs.held {
			t.Errorf("seed %d: it lives, and its volumes are held", seed)
		}
		if d.r.Failed != "" {
			ends["went on"]++
		}
		if len(w.files) > 0 {
			t.Errorf("seed %d: states are left: %v", seed, w.files)
		}
		for _, n := range d.r.Nodes {
			switch g := w.m[n.Name]; {
			case n.Lost:
				ends["lost"]++
				return // an ordinary dead node: the cluster's repair has it
			case g.status == save.Gone && w.died[n.Name]:
				return // it died afterwards
			case g.status != save.Running:
				t.Errorf("seed %d: it lives, and %s is %+v", seed, n.Name, g)
			}
		}
	}
}

// check holds after each step.
func check(t *testing.T, seed uint64, before, after save.Record, w *world) {
	t.Helper()
	for _, wrong := range w.wrong {
		t.Errorf("seed %d: %s", seed, wrong)
	}
	w.wrong = nil
	if after.Phase == save.Ending && before.Phase != save.Ending && before.Phase != save.Verifying {
		t.Errorf("seed %d: machines are ended after %s", seed, before.Phase)
	}
	for _, n := range after.Nodes {
		if n.Lost && !w.died[n.Name] {
			t.Errorf("seed %d: %s is lost, and did not die", seed, n.Name)
		}
	}
	if after.Phase == save.Saved || after.Phase == save.Loading {
		for n, g := range w.m {
			if g.status == save.Running {
				t.Errorf("seed %d: %s, and %s runs", seed, after.Phase, n)
			}
		}
	}
}
