package boot

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/agent/facts"
	"github.com/muster-hpc/muster/agent/smart"
	"github.com/muster-hpc/muster/agent/wipe"
	"github.com/muster-hpc/muster/wire"
)

// platter is a disk in memory; it may be broken.
type platter struct {
	data   []byte
	broken bool
	writes int
}

func (p *platter) Size() int64                { return int64(len(p.data)) }
func (p *platter) Close() error               { return nil }
func (p *platter) Flush() error               { return nil }
func (p *platter) Discard(int64, int64) error { return errors.ErrUnsupported }
func (p *platter) Zero(from, n int64) error {
	p.writes++
	clear(p.data[from : from+n])
	return nil
}
func (p *platter) ReadAt(b []byte, at int64) (int, error) {
	if p.broken {
		return 0, io.ErrUnexpectedEOF
	}
	return copy(b, p.data[at:]), nil
}

// fast is a clock that runs a hundred times faster: what computes until a time has come
// does not let pretended time pass.
type fast struct{ began time.Time }

func (f fast) Now() time.Time                         { return f.began.Add(100 * time.Since(f.began)) }
func (f fast) After(d time.Duration) <-chan time.Time { return time.After(d / 100) }

// worker of a machine with two disks and little memory.
func newPretender(n Network) (*worker, map[string]*platter) {
	disks := map[string]*platter{"sda": {data: []byte(strings.Repeat("x", 1<<20))}, "sdb": {data: []byte(strings.Repeat("y", 2<<20))}}
	open := func(d muster.Disk) (wipe.Device, error) { return disks[d.Name], nil }
	return &worker{
		network: n, clock: fast{time.Now()}, write: open, read: open, cpus: []int{0},
		disks: func() []muster.Disk {
			return []muster.Disk{{Name: "sda", Serial: "A", Size: 1 << 20}, {Name: "sdb", Serial: "B\x1b[2J", Size: 2 << 20}}
		},
		memory: func() (int64, int64) { return 1 << 30, leastLeft + 32<<20 },
		errors: func() []facts.Errors { return nil },
		health: func(string) (smart.Health, error) { return smart.Health{}, nil },
	}, disks
}

func TestCleanOrder(t *testing.T) {
	t.Parallel()
	w, disks := newPretender(&wires{})
	for _, c := range []struct {
		order  []wire.CleanDisk
		passed bool
		steps  int
	}{
		{[]wire.CleanDisk{{Serial: "A", Size: 1 << 20}}, true, 2},
		{[]wire.CleanDisk{{Serial: "A", Size: 1 << 20}, {Serial: "C", Size: 1 << 20}}, false, 3},
		{nil, true, 3},
	} {
		d, _, err := w.do(t.Context(), &wire.BootTask{Kind: wire.BootClean, Clean: &wire.CleanOrder{Disks: c.order}}, t.Logf)
		if err != nil || d.Passed != c.passed || len(d.Steps) != c.steps {
			t.Errorf("%+v: %+v %v", c.order, d, err)
		}
		h := wire.BootCheckIn{Done: &d}
		if strings.Contains(h.Done.Steps[1].What, "\x1b") {
			t.Errorf("what a disk says of itself goes to consoles: %q", h.Done.Steps[1].What)
		}
	}
	if strings.Trim(string(disks["sda"].data), "\x00") != "" || strings.Trim(string(disks["sdb"].data), "y") != "" || disks["sdb"].writes > 0 {
		t.Error("the wrong disk is empty")
	}
}

// growing is a counter that gains so many while memory and disks are tried: before the
// fourth look.
func growing(what string, n uint64, lost bool) func() []facts.Errors {
	at, looks := uint64(100), 0
	return func() []facts.Errors {
		if looks++; looks == 4 {
			at += n
		}
		return []facts.Errors{{What: what, Count: at, Lost: lost}}
	}
}

// A machine passes when all of its parts do; whatever is broken is named.
func TestTestOrder(t *testing.T) {
	t.Parallel()
	link := wire.BootLink{MAC: mac2, Name: "msg0", Speed: 25e9}
	for name, c := range map[string]struct {
		spoil func(n *wires, d map[string]*platter, w *worker)
		says  string
	}{
		"well":            {nil, ""},
		"link down":       {func(n *wires, _ map[string]*platter, _ *worker) { n.nics[1].Carrier = false }, "link msg0 " + mac2 + ": FAILED: the card is there, its link is down"},
		"slow link":       {func(n *wires, _ map[string]*platter, _ *worker) { n.nics[1].Speed = 1e9 }, "up with 1 Gb/s, not 25 Gb/s"},
		"no card":         {func(n *wires, _ map[string]*platter, _ *worker) { n.nics = n.nics[:1] }, "no such card"},
		"unreadable disk": {func(_ *wires, d map[string]*platter, _ *worker) { d["sdb"].broken = true }, "(sdb): FAILED: cannot read it at byte 0"},
		"few mended errors": {func(_ *wires, _ map[string]*platter, w *worker) {
			w.errors = growing("memory of mc0, corrected", 3, false)
		}, ""},
		"many mended errors": {func(_ *wires, _ map[string]*platter, w *worker) {
			w.errors = growing("memory of mc0, corrected", 30, false)
		}, "errors counted: FAILED: 30 of memory of mc0, corrected"},
		"a lost word": {func(_ *wires, _ map[string]*platter, w *worker) {
			w.errors = growing("memory of mc0, not corrected", 1, true)
		}, "errors counted: FAILED: 1 of memory of mc0, not corrected"},
		"no processor": {func(_ *wires, _ map[string]*platter, w *worker) { w.cpus = []int{0, 1000} }, "processor 1000 did not compute"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := &wires{nics: []NIC{{Name: "eth0", MAC: mac1, Carrier: true}, {Name: "eth1", MAC: mac2, Carrier: true, Speed: 25e9}}}
			w, disks := newPretender(n)
			if c.spoil != nil {
				c.spoil(n, disks, w)
			}
			d, _, err := w.do(t.Context(), &wire.BootTask{Kind: wire.BootTest, Links: []wire.BootLink{link}}, t.Logf)
			text := ""
			for _, s := range d.Steps {
				text += s.What + ": " + s.Check + "\n"
			}
			if err != nil || d.Passed != (c.says == "") || !strings.Contains(text, c.says) || len(d.Steps) != 6 || disks["sda"].writes+disks["sdb"].writes > 0 {
				t.Errorf("%v %v\n%s", d.Passed, err, text)
			}
		})
	}
	w, _ := newPretender(&wires{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if d, _, err := w.do(ctx, &wire.BootTask{Kind: wire.BootTest}, t.Logf); !errors.Is(err, context.Canceled) || d.Passed {
		t.Errorf("%+v %v", d, err)
	}
}

// A long order tells the server how far it is, keeps its address, and is told to the
// server although its time is over.
func TestLongWork(t *testing.T) {
	pretended(t, func(t *testing.T) {
		o := &wire.BootTask{Kind: wire.BootClean, Attempt: 4, GiveUp: muster.Duration(20_000 * time.Millisecond), Clean: &wire.CleanOrder{}}
		var refused atomic.Int64
		r := newRig(t, func(h wire.BootCheckIn) (*wire.BootReply, error) {
			if h.Done != nil && refused.Add(1) == 1 {
				return nil, muster.Errorf(muster.EUnavailable, "away")
			}
			return &wire.BootReply{Task: o}, nil
		})
		r.Work = func(_ context.Context, _ *wire.BootTask, say func(string, ...any)) (wire.BootTaskResult, *muster.Facts, error) {
			say("clean: half of it")
			<-r.Clock.After(80 * time.Second)
			return wire.BootTaskResult{Passed: true}, nil, nil
		}
		if err := r.run(t); err != nil || r.offs != 1 {
			t.Fatalf("%v\n%s", err, r.screen)
		}
		heard := r.server.heard
		last := heard[len(heard)-1]
		if len(heard) < 4 || heard[1].Progress != "clean: half of it" || heard[1].State != "clean" || heard[1].Attempt != 4 ||
			last.Done == nil || !last.Done.Passed || last.Done.Took < muster.Duration(time.Minute) || refused.Load() < 2 || r.net.leases < 2 {
			t.Errorf("%d hellos, %d leases, %+v\n%s", len(heard), r.net.leases, last.Done, r.screen)
		}
	})
}

// Another order ends what is under way, and is done instead.
func TestWorkEnded(t *testing.T) {
	pretended(t, func(t *testing.T) {
		off := gives(&wire.BootTask{Kind: wire.BootOff})
		r := newRig(t, gives(&wire.BootTask{Kind: wire.BootClean, Attempt: 1, GiveUp: muster.Duration(600_000 * time.Millisecond), Clean: &wire.CleanOrder{}}), off)
		ended := false
		r.Work = func(ctx context.Context, _ *wire.BootTask, _ func(string, ...any)) (wire.BootTaskResult, *muster.Facts, error) {
			<-ctx.Done()
			ended = true
			return wire.BootTaskResult{Passed: true}, nil, ctx.Err()
		}
		if err := r.run(t); err != nil || r.offs != 1 || !ended {
			t.Errorf("%v %v\n%s", err, ended, r.screen)
		}
		for _, h := range r.server.heard {
			if h.Done != nil {
				t.Errorf("work that was ended counts as done: %+v", h.Done)
			}
		}
		if f := r.server.failures(); len(f) != 1 || f[0].Code != "task" || f[0].Stage != "clean" {
			t.Errorf("%+v", f)
		}
	})
}
