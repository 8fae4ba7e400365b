package hugepages

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Host is where the memory nodes of a host are.
type Host struct {
	// Dir is /sys/devices/system/node.
	Dir string
}

// This is the host that this program runs on.
func This() Host { return Host{Dir: "/sys/devices/system/node"} }

// pool is the pages of one size of one memory node. While it is open no other process takes or gives pages of it, as far
// as it uses this package.
type pool struct {
	dir string
	nr  *os.File // nr_hugepages
}

func (h Host) dir(node int, size int64) string {
	return filepath.Join(h.Dir, fmt.Sprintf("node%d", node), "hugepages", fmt.Sprintf("hugepages-%dkB", size>>10))
}

func (h Host) open(node int, size int64) (*pool, error) {
	p := &pool{dir: h.dir(node, size)}
	f, err := os.OpenFile(filepath.Join(p.dir, "nr_hugepages"), os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		_ = f.Close()
		return nil, err
	}
	p.nr = f
	return p, nil
}

func (p *pool) close() { _ = p.nr.Close() }

// total is how many pages there are, free or not.
func (p *pool) total() (int64, error) { return p.read("nr_hugepages") }

func (p *pool) free() (int64, error) { return p.read("free_hugepages") }

func (p *pool) read(name string) (int64, error) {
	b, err := os.ReadFile(filepath.Join(p.dir, name))
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	if err == nil && n < 0 {
		err = fmt.Errorf("%s/%s is %d", p.dir, name, n)
	}
	return n, err
}

// set asks for so many pages, and returns how many there are then: the kernel may not find as many.
func (p *pool) set(n int64) (int64, error) {
	if _, err := p.nr.WriteAt([]byte(strconv.FormatInt(n, 10)+"\n"), 0); err != nil {
		return 0, err
	}
	return p.total()
}
