package wipe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// pretended is a disk in memory that may lie. Only what is not zero is held.
type pretended struct {
	size    int64
	mu      sync.Mutex
	dirt    []part // that has data
	spared  []part // that zeroes do not reach
	trims   bool
	calls   []string
	broken  map[string]error
	closed  bool
	written int64
}

func (d *pretended) call(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.calls) == 0 || d.calls[len(d.calls)-1] != name {
		d.calls = append(d.calls, name)
	}
	return d.broken[name]
}
func (d *pretended) Size() int64 { return d.size }
func (d *pretended) Close() error {
	d.closed = true
	return nil
}
func (d *pretended) Flush() error { return d.call("flush") }
func (d *pretended) Discard(int64, int64) error {
	if !d.trims {
		return fmt.Errorf("%w: no", errors.ErrUnsupported)
	}
	return d.call("discard") // and shows its data still
}
func (d *pretended) Zero(from, n int64) error {
	if from != d.written {
		return fmt.Errorf("zeroes at %d, not at %d", from, d.written)
	}
	d.written += n
	if d.written == d.size {
		d.dirt = d.spared
	}
	return d.call("zero")
}
func (d *pretended) ReadAt(p []byte, at int64) (int, error) {
	if err := d.call("read"); err != nil {
		return 0, err
	}
	if at%512 != 0 || len(p)%512 != 0 || at < 0 || at+int64(len(p)) > d.size {
		return 0, io.ErrUnexpectedEOF
	}
	clear(p)
	for _, x := range d.dirt {
		for i := max(at, x.from); i < min(at+int64(len(p)), x.from+x.n); i++ {
			p[i-at] = 0xa5
		}
	}
	return len(p), nil
}

func TestErase(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		d    *pretended
		says string
		code muster.Code
	}{
		"small":       {&pretended{size: 3<<20 + 512}, "3146240.*3146240", ""},
		"large":       {&pretended{size: 1 << 40, trims: true}, "discarded.*1099511627776.*1026.*66 MiB", ""},
		"odd":         {&pretended{size: 1<<38 + 3*512}, "", ""},
		"keeps data":  {&pretended{size: 1 << 40, spared: []part{{5 << 38 >> 2, 4 << 30}}}, "byte", muster.ECorrupt},
		"keeps start": {&pretended{size: 1 << 40, spared: []part{{446, 66}}}, "byte 446 ", muster.ECorrupt},
		"keeps end":   {&pretended{size: 1 << 40, spared: []part{{1<<40 - 512, 1}}}, "byte 1099511627264 ", muster.ECorrupt},
		"no zeroes":   {&pretended{size: 1 << 30, broken: map[string]error{"zero": io.ErrShortWrite}}, "byte 0.*short write", muster.EUnavailable},
		"no discard":  {&pretended{size: 1 << 30, trims: true, broken: map[string]error{"discard": io.ErrShortWrite}}, "short write.*1073741824.*1026", ""},
		"no flush":    {&pretended{size: 1 << 30, broken: map[string]error{"flush": io.ErrShortWrite}}, "short write", muster.EUnavailable},
		"no reading":  {&pretended{size: 1 << 30, broken: map[string]error{"read": io.ErrShortWrite}}, "short write", muster.EUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := c.d
			if d.dirt == nil {
				d.dirt = []part{{0, 4096}, {d.size - 512, 512}}
			}
			e, err := Erase(t.Context(), d, func(int64) {})
			says := e.String()
			if err != nil {
				says = text(err)
			} else if got, want := strings.Join(d.calls, " "), "zero flush read"; strings.TrimPrefix(got, "discard ") != want || d.written != d.size {
				t.Errorf("%s; %d bytes", got, d.written)
			}
			if !regexp.MustCompile(c.says).MatchString(says) || (err != nil || c.code != "") && muster.CodeOf(err) != c.code {
				t.Errorf("%q, %v", says, err)
			}
		})
	}
}

// Whatever stays on a disk and is as long as two of its parts is found, and nothing
// is read that is not the disk's.
func TestProveProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.Int64Range(1, 1<<34).Draw(t, "sectors") * 512
		long := min(size, max(2*(size/samples)+2*align, 512))
		if size <= wholly {
			long = 1
		}
		from := rapid.Int64Range(0, size-long).Draw(t, "from")
		d := &pretended{size: size, dirt: []part{{from, long}}}
		if _, err := Prove(context.Background(), d, size); muster.CodeOf(err) != muster.ECorrupt {
			t.Fatalf("%d bytes at %d of %d are overlooked: %v", long, from, size, err)
		}
		d.dirt = nil
		p, err := Prove(context.Background(), d, size)
		if err != nil || p.Bytes > size && size > wholly || p.All && p.Bytes != size {
			t.Fatalf("%+v of %d: %v", p, size, err)
		}
	})
}

func rack(disks map[string]*pretended) func(d muster.Disk) (Device, error) {
	return func(d muster.Disk) (Device, error) { return disks[d.Name], nil }
}

// Of three disks the two that are named are erased; what cannot be is a failed step.
func TestClean(t *testing.T) {
	t.Parallel()
	have := []muster.Disk{{Name: "sda", Serial: "A", Size: 1 << 30}, {Name: "sdb", Serial: "B", Size: 1 << 30}, {Name: "sdc", Serial: "C", Size: 1 << 30}}
	disks := map[string]*pretended{}
	for _, d := range have {
		disks[d.Name] = &pretended{size: d.Size, dirt: []part{{0, 512}}}
	}
	disks["sdc"].broken = map[string]error{"zero": io.ErrShortWrite}
	c := Cleaner{Disks: func() []muster.Disk { return have }, Open: rack(disks), Say: t.Logf, Clock: muster.SystemClock{}}
	order := &wire.CleanOrder{Disks: []wire.CleanDisk{{Serial: "C", Size: 1 << 30}, {Serial: "D", Size: 5}, {Serial: "A", Size: 1 << 30}, {Serial: "A", Size: 7}}}
	steps, err := c.Run(t.Context(), order)
	if err != nil || len(steps) != 5 {
		t.Fatalf("%+v %v", steps, err)
	}
	for i, want := range []muster.CleanStep{
		{What: "disk C (sdc)", Check: "FAILED: "}, {What: "disk D", Check: ""},
		{What: "disk A (sda)", Check: "1073741824", OK: true}, {What: "disk A", Check: "1073741824"},
		{What: "disk B (sdb)", Check: "", OK: true},
	} {
		if got := steps[i]; got.What != want.What || !strings.Contains(got.Check, want.Check) || got.OK != want.OK {
			t.Errorf("%+v, not %+v", got, want)
		}
	}
	if len(disks["sdb"].calls) > 0 || !disks["sda"].closed || !disks["sdc"].closed {
		t.Errorf("%v", disks["sdb"].calls)
	}
}

// A name that goes to another disk between looking and opening is not erased.
func TestCleanRenamed(t *testing.T) {
	t.Parallel()
	looks := 0
	d := &pretended{size: 1 << 30}
	c := Cleaner{Disks: func() []muster.Disk {
		if looks++; looks == 1 {
			return []muster.Disk{{Name: "sda", Serial: "A", Size: 1 << 30}}
		}
		return []muster.Disk{{Name: "sda", Serial: "B", Size: 1 << 30}}
	}, Open: rack(map[string]*pretended{"sda": d}), Say: t.Logf, Clock: muster.SystemClock{}}
	steps, err := c.Run(t.Context(), &wire.CleanOrder{Disks: []wire.CleanDisk{{Serial: "A", Size: 1 << 30}}})
	if err != nil || steps[0].OK || len(d.calls) > 0 {
		t.Errorf("%+v %v %v", steps, err, d.calls)
	}
}

// A disk that comes late is waited for; an end of the context ends everything.
func TestCleanLate(t *testing.T) {
	t.Parallel()
	looks := 0
	d := &pretended{size: 1 << 30}
	c := Cleaner{Disks: func() []muster.Disk {
		if looks++; looks == 1 {
			return nil
		}
		return []muster.Disk{{Name: "sda", Serial: "A", Size: 1 << 30}}
	}, Open: rack(map[string]*pretended{"sda": d}), Say: t.Logf, Clock: muster.SystemClock{}, Appear: 20 * time.Second}
	order := &wire.CleanOrder{Disks: []wire.CleanDisk{{Serial: "A", Size: 1 << 30}}}
	steps, err := c.Run(t.Context(), order)
	if err != nil || !steps[0].OK {
		t.Errorf("%+v %v", steps, err)
	}
	// One of another size is not waited for.
	c.Appear = time.Hour
	steps, err = c.Run(t.Context(), &wire.CleanOrder{Disks: []wire.CleanDisk{{Serial: "A", Size: 1 << 31}}})
	if err != nil || len(steps) != 1 || steps[0].OK {
		t.Errorf("%+v %v", steps, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	d.written, d.calls = 0, nil
	if _, err := c.Run(ctx, order); !errors.Is(err, context.Canceled) || len(d.calls) > 0 {
		t.Errorf("%v %v", err, d.calls)
	}
}

// A place that cannot be read is found, and nothing is written.
func TestTry(t *testing.T) {
	t.Parallel()
	for _, size := range []int64{512, 1 << 20, 1<<40 + 512} {
		d := &pretended{size: size}
		r, err := Try(t.Context(), d, size, 64, muster.SystemClock{}, time.Minute)
		if err != nil || r.Places != 66 || strings.Join(d.calls, " ") != "read" {
			t.Errorf("%d: %+v %v %v", size, r, err, d.calls)
		}
	}
	d := &pretended{size: 1 << 30, broken: map[string]error{"read": io.ErrNoProgress}}
	if _, err := Try(t.Context(), d, d.size, 64, muster.SystemClock{}, time.Minute); muster.CodeOf(err) != muster.EUnavailable {
		t.Error(err)
	}
}
