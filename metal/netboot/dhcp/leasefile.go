package dhcp

import (
	"bytes"
	"net/netip"
	"os"
	"path/filepath"
	"slices"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/atomicfile"
)

// LeaseFile keeps leases in one file to which lines are added. When most of its
// lines are old ones, it is written anew. Not for several goroutines.
type LeaseFile struct {
	path  string
	file  *os.File
	live  map[netip.Addr]Lease
	lines int
	buf   []byte
	torn  bool // a write failed half way: only a new file is sound
}

// OpenLeaseFile opens or makes the file. A last line that is not whole is what a
// crash left of leases that nobody was told of, and is dropped; anything else
// that is no lease is ECorrupt.
func OpenLeaseFile(path string) (*LeaseFile, error) {
	data, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return nil, muster.Errorf(muster.EUnavailable, "cannot read leases in %s", path).
			WithHint("see whether the directory may be read").Wrap(err)
	}
	f := &LeaseFile{path: path, live: map[netip.Addr]Lease{}}
	for n := 1; ; n++ {
		line, rest, whole := bytes.Cut(data, []byte{'\n'})
		if !whole {
			break
		}
		l, err := parseLine(string(line))
		if err != nil {
			return nil, muster.Errorf(muster.ECorrupt, "line %d of %s is not a lease", n, path).
				WithHint("mend the line; or move the file away, and machines get new addresses").Wrap(err)
		}
		f.note(l)
		data = rest
	}
	if err := f.rewrite(); err != nil {
		return nil, err
	}
	return f, nil
}

func (f *LeaseFile) note(l Lease) {
	if l.Until.IsZero() {
		delete(f.live, l.Address)
	} else {
		f.live[l.Address] = l
	}
}

// Load returns the leases in the order of their addresses.
func (f *LeaseFile) Load() ([]Lease, error) {
	out := make([]Lease, 0, len(f.live))
	for _, l := range f.live {
		out = append(out, l)
	}
	slices.SortFunc(out, func(a, b Lease) int { return a.Address.Compare(b.Address) })
	return out, nil
}

// Put adds lines and waits until the disk has them.
func (f *LeaseFile) Put(leases []Lease) error {
	for _, l := range leases {
		f.note(l)
	}
	if f.lines += len(leases); f.torn || f.lines > 4*len(f.live)+4096 {
		return f.rewrite()
	}
	f.buf = f.buf[:0]
	for _, l := range leases {
		f.buf = l.appendLine(f.buf)
	}
	_, err := f.file.Write(f.buf)
	if err == nil {
		err = f.file.Sync()
	}
	if err != nil {
		f.torn = true
		return f.failed(err)
	}
	return nil
}

func (f *LeaseFile) failed(err error) error {
	return muster.Errorf(muster.EUnavailable, "cannot write leases to %s", f.path).
		WithHint("make room on that disk; until then no machine gets an address").Wrap(err)
}

// rewrite puts a new file with the live leases in the place of the old one.
func (f *LeaseFile) rewrite() error {
	leases, _ := f.Load()
	f.buf = f.buf[:0]
	for _, l := range leases {
		f.buf = l.appendLine(f.buf)
	}
	next, err := os.OpenFile(f.path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return f.failed(err)
	}
	_, err = next.Write(f.buf)
	if err == nil {
		err = next.Sync()
	}
	if err == nil {
		err = os.Rename(f.path+".new", f.path)
	}
	if err == nil {
		err = atomicfile.SyncDir(filepath.Dir(f.path))
	}
	if err != nil {
		next.Close()
		return f.failed(err)
	}
	if f.file != nil {
		f.file.Close()
	}
	f.file, f.lines, f.torn = next, len(leases), false
	return nil
}

// Close closes the file. All that was put is on the disk already.
func (f *LeaseFile) Close() error { return f.file.Close() }
