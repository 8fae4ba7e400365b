package save_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/muster-hpc/muster/vm/save"
	"github.com/muster-hpc/muster/vm/save/savetest"
)

// world is hardware that outlives servers: machines that count while they run, and files.
type world struct {
	mu    sync.Mutex
	m     map[string]*guest
	files map[string]*file
	wrong []string // what must never be
	died  map[string]bool
	nfs   nfsServer
}

// nfsServer serves the machines. It forgets the locks of who stands still for longer than a lease while it serves.
type nfsServer struct {
	held      bool
	forgotten map[string]bool // whose locks it has not any more
	kept      map[string]bool // the same of when it was held
}

// longer lets more time pass than a lease. Whoever stands while another runs may lose its locks: as any machine that is
// behind the others.
func (w *world) longer() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.nfs.held {
		return
	}
	for _, g := range w.m {
		if g.status == save.Running {
			return
		}
	}
	for n := range w.m {
		w.nfs.forgotten[n] = true
	}
}

// Hold and Serve are the volumes of the machines.
func (p *pretended) Hold(_ context.Context, still bool) error {
	return p.call("", func(*guest) error {
		if !p.nfs.held && !still {
			p.nfs.kept = maps.Clone(p.nfs.forgotten)
		}
		p.nfs.held = true
		return nil
	})
}

func (p *pretended) Serve(_ context.Context, still bool) error {
	return p.call("", func(*guest) error {
		if p.nfs.held || still {
			p.nfs.forgotten = maps.Clone(p.nfs.kept)
		}
		p.nfs.held = false
		return nil
	})
}

// guest is a machine. All copies of what it was at one time have the same life; only one of them may go on.
type guest struct {
	status save.Status
	life   int // what it goes on from
	count  int
	clock  bool
}

// file is a saved state.
type file struct {
	life, count int
	id          int
	bad, short  bool
}

func (f *file) state() save.State { return save.State{SHA256: fmt.Sprint(f.id, f.bad), Size: 100} }

func newWorld(nodes ...string) *world {
	w := &world{m: map[string]*guest{}, files: map[string]*file{}, died: map[string]bool{}}
	w.nfs.forgotten = map[string]bool{}
	for i, n := range nodes {
		w.m[n] = &guest{status: save.Running, life: i * 1000}
	}
	return w
}

// pretended is a hypervisor, in one life of its server. Between any two calls the server may be killed, and any call may fail.
type pretended struct {
	*world
	chance *rand.Rand
	fails  float64 // how often a call fails
	deaths float64 // how often a machine dies
	left   *int    // points until the server is killed; nil: never
	spent  map[[2]any]bool
	// sequence: it is driven by a sequence that has its volumes.
	sequence bool
}

var (
	errKilled = errors.New("the server was killed")
	errFails  = errors.New("it does not work now")
)

// call makes one call, after which, before which, or in the middle of which the server may be killed.
func (p *pretended) call(node string, do func(g *guest) error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.killed() {
		return errKilled
	}
	g := p.m[node]
	if p.chance != nil && g != nil && p.chance.Float64() < p.deaths {
		*g = guest{status: save.Gone, life: g.life, count: g.count}
		p.died[node] = true
	}
	if p.chance != nil && p.chance.Float64() < p.fails {
		if p.chance.IntN(2) == 0 {
			_ = do(g) // done, and nobody heard of it
		}
		return errFails
	}
	if err := do(g); err != nil {
		return err
	}
	if p.killed() {
		return errKilled
	}
	return nil
}

func (p *pretended) killed() bool {
	if p.left == nil {
		return false
	}
	*p.left--
	return *p.left < 0
}

func (p *pretended) Observe(_ context.Context, node string) (s save.Status, err error) {
	err = p.call(node, func(g *guest) error { s = g.status; return nil })
	return s, err
}

func (p *pretended) Stop(_ context.Context, node string) error {
	return p.call(node, func(g *guest) error {
		if g.status != save.Running && g.status != save.Stopped {
			return fmt.Errorf("it is %s", g.status)
		}
		if p.sequence && !p.nfs.held {
			p.wrong = append(p.wrong, node+" is stopped while its volumes are served")
		}
		g.status = save.Stopped
		return nil
	})
}

func (p *pretended) Continue(_ context.Context, node string) error {
	return p.call(node, func(g *guest) error {
		if g.status != save.Running && g.status != save.Stopped {
			return fmt.Errorf("it is %s", g.status)
		}
		if g.status == save.Stopped {
			p.goesOn(node, g)
		}
		g.status = save.Running
		return nil
	})
}

// goesOn spends a point in the life of a machine: whoever else goes on from there is its double.
func (p *pretended) goesOn(node string, g *guest) {
	key := [2]any{node, g.life}
	if p.spent[key] {
		p.wrong = append(p.wrong, fmt.Sprintf("%s went on twice from %d", node, g.life))
	}
	p.spent[key] = true
	if p.sequence && (p.nfs.held || p.nfs.forgotten[node]) {
		p.wrong = append(p.wrong, fmt.Sprintf("%s went on: its volumes are held: %v; its locks are lost: %v", node, p.nfs.held, p.nfs.forgotten[node]))
	}
	g.life++
	g.count++
}

func (p *pretended) Save(_ context.Context, node string) (s save.State, err error) {
	err = p.call(node, func(g *guest) error {
		if g.status != save.Stopped {
			return fmt.Errorf("it is %s", g.status)
		}
		f := &file{life: g.life, count: g.count, id: g.life*10 + len(p.files)}
		p.files[node] = f
		if p.chance != nil && p.chance.IntN(20) == 0 {
			f.bad = true // the disk keeps something else
			s = save.State{SHA256: fmt.Sprint(f.id, false), Size: 100}
			return nil
		}
		s = f.state()
		return nil
	})
	return s, err
}

func (p *pretended) whole(node string, s save.State) error {
	if f := p.files[node]; f == nil || f.state() != s || f.short {
		return errors.New("its state is not whole")
	}
	return nil
}

func (p *pretended) Verify(_ context.Context, node string, s save.State) error {
	return p.call(node, func(*guest) error { return p.whole(node, s) })
}

func (p *pretended) End(_ context.Context, node string) error {
	return p.call(node, func(g *guest) error {
		if g.status == save.Running {
			p.wrong = append(p.wrong, node+" was ended while it ran")
		}
		g.status = save.Gone
		return nil
	})
}

func (p *pretended) Load(_ context.Context, node string, s save.State) error {
	return p.call(node, func(g *guest) error {
		if g.status != save.Gone {
			return fmt.Errorf("it is %s", g.status)
		}
		if err := p.whole(node, s); err != nil {
			g.status = save.Partial
			return err
		}
		f := p.files[node]
		*g = guest{status: save.Stopped, life: f.life, count: f.count}
		return nil
	})
}

func (p *pretended) SetClock(_ context.Context, node string) error {
	return p.call(node, func(g *guest) error {
		if g.status != save.Running {
			return fmt.Errorf("it is %s", g.status)
		}
		g.clock = true
		return nil
	})
}

func (p *pretended) Erase(_ context.Context, node string) error {
	return p.call(node, func(*guest) error { delete(p.files, node); return nil })
}

// What is pretended passes the suite that QEMU passes.
func TestPretended(t *testing.T) {
	t.Parallel()
	var w *world
	savetest.Suite(t, savetest.Subject{
		Nodes: []string{"n01", "n02", "n03"},
		Open: func(*testing.T) save.Hypervisor {
			w = newWorld("n01", "n02", "n03")
			return &pretended{world: w, spent: map[[2]any]bool{}}
		},
		Spoil: func(_ *testing.T, n string) { w.files[n].bad = true },
		Cut:   func(_ *testing.T, n string) { w.files[n].short = true },
		Count: func(_ *testing.T, n string) int { return w.m[n].count },
	})
}
