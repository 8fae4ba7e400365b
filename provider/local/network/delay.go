package network

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// A link that is held to a delay is a pair of taps, and this program carries frames from one to the other,
// late. Kernels can do that, too, but many are built without netem. The taps stay when the program ends; such
// a link carries nothing until the next one is there.

// delayed is a link whose frames this program carries.
type delayed struct {
	files []*os.File
	done  sync.WaitGroup
}

// Bounds of what is on its way in a link, in each direction. What is more is lost, as in a switch.
const (
	delayedFrames = 4096
	delayedBytes  = 64 << 20
	// frameSize is that of the largest segment, with its headers.
	frameSize = 1<<16 + 64
)

// offloads let segments pass as they are, large and without a checksum.
const offloads = unix.TUN_F_CSUM | unix.TUN_F_TSO4 | unix.TUN_F_TSO6

// makeTap makes a tap that stays when its file is closed. The caller holds r.mu.
func (r *Rack) makeTap(name string, mtu int) error {
	f, err := r.openEnd(name)
	if err != nil {
		return fmt.Errorf("make tap %s: %w", name, err)
	}
	defer func() { _ = f.Close() }()
	if err := control(f, func(fd int) error { return unix.IoctlSetInt(fd, unix.TUNSETPERSIST, 1) }); err != nil {
		return fmt.Errorf("keep tap %s: %w", name, err)
	}
	l, err := r.h.LinkByName(name)
	if err == nil && mtu > 0 {
		err = r.h.LinkSetMTU(l, mtu)
	}
	return err
}

// openEnd opens a tap in the rack, and makes it when there is none.
func (r *Rack) openEnd(name string) (f *os.File, err error) {
	err = r.Do(func() error {
		if f, err = openTap(name, 0, false); err != nil {
			return err
		}
		return control(f, func(fd int) error { return unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, offloads) })
	})
	if err != nil && f != nil {
		_ = f.Close()
	}
	return f, err
}

func control(f *os.File, do func(fd int) error) error {
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var did error
	if err := c.Control(func(fd uintptr) { did = do(int(fd)) }); err != nil {
		return err
	}
	return did
}

// carry begins to carry the frames of a link whose ends are taps. The caller holds r.mu.
func (r *Rack) carry(lower, upper string, delay time.Duration) error {
	r.drop(lower)
	d := &delayed{}
	for _, name := range []string{lower, upper} {
		f, err := r.openEnd(name)
		if err != nil {
			d.close()
			return fmt.Errorf("open tap %s: %w", name, err)
		}
		d.files = append(d.files, f)
	}
	d.done.Go(func() { pass(d.files[0], d.files[1], delay) })
	d.done.Go(func() { pass(d.files[1], d.files[0], delay) })
	if r.delayed == nil {
		r.delayed = map[string]*delayed{}
	}
	r.delayed[lower] = d
	return nil
}

// drop ends that for the link with this lower end. The caller holds r.mu.
func (r *Rack) drop(lower string) {
	if d := r.delayed[lower]; d != nil {
		d.close()
		delete(r.delayed, lower)
	}
}

func (d *delayed) close() {
	for _, f := range d.files {
		_ = f.Close()
	}
	d.done.Wait()
}

// carryAll carries for the links that are there: those of clusters of an earlier server. The caller holds r.mu.
func (r *Rack) carryAll(links []netlink.Link, delays map[string]time.Duration) error {
	var errs []error
	for _, l := range links {
		name := l.Attrs().Name
		m, ok := trunkMark(name)
		if ok && strings.HasPrefix(name, "t") && l.Type() == "tuntap" && l.Attrs().Alias == trunkWhole {
			errs = append(errs, r.carry(name, "s"+strings.TrimPrefix(name, "t"), delays[m]))
		}
	}
	return errors.Join(errs...)
}

// pass hands on what comes from one tap to another, so much later, until one of them is closed.
func pass(from, to *os.File, delay time.Duration) {
	type frame struct {
		due  time.Time
		data []byte
	}
	var held atomic.Int64
	queue := make(chan frame, delayedFrames)
	var writer sync.WaitGroup
	writer.Go(func() {
		for f := range queue {
			time.Sleep(time.Until(f.due))
			_, _ = to.Write(f.data) // what cannot be sent is lost
			held.Add(-int64(len(f.data)))
		}
	})
	defer writer.Wait()
	defer close(queue)
	buffer := make([]byte, frameSize)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		if held.Add(int64(n)) > delayedBytes {
			held.Add(-int64(n))
			continue
		}
		select {
		case queue <- frame{time.Now().Add(delay), append([]byte(nil), buffer[:n]...)}:
		default:
			held.Add(-int64(n))
		}
	}
}
