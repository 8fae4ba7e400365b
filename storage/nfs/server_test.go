package nfs

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/storage/volume"
	"github.com/muster-hpc/muster/storage/volume/volumetest"
)

// site is a server with volumes on this host's loopback addresses.
type site struct {
	*Server
	cfg     Config
	volumes *volume.ManagedNFS
}

const (
	alice = "127.0.0.11"
	bob   = "127.0.0.12"
)

func newSite(t *testing.T) *site {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: file systems are mounted and served")
	}
	if _, err := exec.LookPath("ganesha.nfsd"); err != nil {
		t.Skip("ganesha is not here: packages nfs-ganesha and nfs-ganesha-vfs")
	}
	if _, err := os.Stat("/dev/loop-control"); err != nil {
		t.Skip("this host has no loop devices")
	}
	dir, err := os.MkdirTemp("", "muster-export-") // a test's own has names that no path may
	if err != nil {
		t.Fatal(err)
	}
	s := &site{cfg: Config{Dir: filepath.Join(dir, "export"), Address: netip.MustParseAddr("127.0.0.1"), Port: freePort(t)}, volumes: volume.NewManagedNFS(filepath.Join(dir, "volumes"))}
	s.open(t)
	t.Cleanup(func() {
		if t.Failed() {
			b, _ := os.ReadFile(s.path("log"))
			t.Logf("%s", b[max(0, len(b)-6000):])
		}
		if err := errors.Join(s.Destroy(), s.volumes.Unmount(context.Background()), os.RemoveAll(dir)); err != nil {
			t.Error(err)
		}
	})
	return s
}

func freePort(t *testing.T) uint16 {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).AddrPort().Port()
}

func (s *site) open(t *testing.T) {
	t.Helper()
	var err error
	if s.Server, err = Open(s.cfg); err != nil {
		t.Fatal(err)
	}
}

// volume makes one that some may have, with a secret in it.
func (s *site) volume(t *testing.T, secret string, clients ...string) Export {
	t.Helper()
	v := volumetest.New(muster.VolumeHome, muster.DriverManagedNFS)
	v.Quota = 64 << 20
	if _, err := s.volumes.Create(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	list, err := s.volumes.Mounts(v, "/home", false)
	if err != nil {
		t.Fatal(err)
	}
	e := Export{Name: list[0].Export.Name, Path: list[0].Export.Path}
	for _, c := range clients {
		e.Clients = append(e.Clients, Client{Address: netip.MustParseAddr(c)})
	}
	if err := os.WriteFile(filepath.Join(e.Path, "secret"), []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	return e
}

func (s *site) dial(t *testing.T, from string) *nfsClient {
	t.Helper()
	c, err := dialNFS(s.listen(), from, true, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.close)
	return c
}

// volume is the record of what a test made.
func (e Export) volume() muster.Volume {
	return muster.Volume{ID: muster.VolumeID(strings.TrimSuffix(e.Name, "-home")), Kind: muster.VolumeHome}
}

// TestDoors: each finds what is theirs, and nobody anything else.
func TestDoors(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	hers, his := s.volume(t, "hers", alice), s.volume(t, "his", bob)
	if err := s.Set(t.Context(), []Export{hers, his}); err != nil {
		t.Fatal(err)
	}
	a, b := s.dial(t, alice), s.dial(t, bob)
	secret := func(c *nfsClient, e Export) ([]byte, error) { return c.walk(e.Name, "secret") }
	mine, err := secret(a, hers)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := a.read(mine); err != nil || text != "hers" {
		t.Fatal(text, err)
	}
	theirs, err := secret(b, his)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := a.walk(hers.Name)
	if err != nil {
		t.Fatal(err)
	}
	a.uid, a.gid = 1000, 100
	if err := a.create(dir, "no", "x"); !errors.Is(err, nfsAccess) {
		t.Errorf("anybody writes in root's directory: %v", err)
	}
	a.uid, a.gid = 0, 0
	if err := a.create(dir, "made", "by root"); err != nil {
		t.Errorf("root is not root: %v", err)
	}
	if b, err := os.ReadFile(filepath.Join(hers.Path, "made")); err != nil || string(b) != "by root" {
		t.Error(string(b), err)
	}
	// What the host writes is seen at once.
	if err := os.WriteFile(filepath.Join(hers.Path, "made"), []byte("by host"), 0o600); err != nil {
		t.Fatal(err)
	}
	if made, err := a.lookup(dir, "made"); err != nil {
		t.Error(err)
	} else if text, err := a.read(made); err != nil || text != "by host" {
		t.Error(text, err)
	}

	if _, err := secret(a, his); !errors.Is(err, nfsNoEntry) && !errors.Is(err, nfsAccess) {
		t.Errorf("by name: %v", err)
	}
	if top, err := a.walk(); err != nil {
		t.Error(err)
	} else if list, err := a.names(top); err != nil || !slices.Equal(list, []string{hers.Name}) {
		t.Errorf("she sees %v, %v", list, err)
	}
	if _, err := a.read(theirs); err == nil {
		t.Error("by handle")
	}
	for _, name := range []string{"..", "../..", "../" + his.Name, "/etc", "."} {
		if h, err := a.lookup(dir, name); err == nil {
			t.Errorf("%q leads to %x", name, h)
		}
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(hers.Path, "link")); err != nil {
		t.Fatal(err)
	}
	if link, err := a.lookup(dir, "link"); err != nil {
		t.Error(err)
	} else if text, err := a.read(link); err == nil {
		t.Errorf("the server follows links: %q", text)
	}
	low, err := dialNFS(s.listen(), alice, false, 0)
	if err == nil {
		defer low.close()
		if _, err := secret(low, hers); err == nil {
			t.Error("any user of her machine can claim to be root")
		}
	}
	stranger := s.dial(t, "127.0.0.13")
	if _, err := stranger.read(mine); err == nil {
		t.Error("a stranger reads by handle")
	}
	if _, err := secret(stranger, hers); err == nil {
		t.Error("a stranger reads by name")
	}
	if got := forge(t, s, a, mine, theirs); len(got) > 0 {
		t.Error(strings.Join(got, "\n"))
	}
}

// TestWhyApart shows that forging is no fancy: where two directories are exported from
// one file system, a handle that was made up reads what is another's, and the host's.
// It fails when it is not needed any more.
func TestWhyApart(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	var set []Export
	for i, client := range []string{alice, bob} {
		e := Export{Name: fmt.Sprint("dir", i), Path: fmt.Sprint(s.cfg.Dir, i), Clients: []Client{{Address: netip.MustParseAddr(client)}}}
		if err := os.Mkdir(e.Path, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(e.Path, "secret"), []byte([]string{"hers", "his"}[i]), 0o600); err != nil {
			t.Fatal(err)
		}
		set = append(set, e)
	}
	s.separate = func(set []Export, _ map[uint64]bool) ([]Export, []error) { return set, nil }
	if err := s.Set(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	a, b := s.dial(t, alice), s.dial(t, bob)
	mine, err := a.walk("dir0", "secret")
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := b.walk("dir1", "secret")
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(forge(t, s, a, mine, theirs), "\n")
	for _, want := range []string{`reads "his"`, `"{\"`} {
		if !strings.Contains(got, want) {
			t.Errorf("nothing forged %s: %.600s", want, got)
		}
	}
}

// forge tries handles that nobody was given, and reports where they led.
func forge(t *testing.T, s *site, a *nfsClient, mine, theirs []byte) (got []string) {
	t.Helper()
	try := func(what string, handle []byte) {
		if text, err := a.read(handle); err == nil && text != "hers" && text != "by host" {
			got = append(got, fmt.Sprintf("%s: %x reads %.20q", what, handle, text))
		}
		for _, name := range []string{"etc", "export", "exports.json", "his", "secret"} {
			if h, err := a.lookup(handle, name); err == nil {
				if text, err := a.read(h); err != nil || text != "hers" {
					got = append(got, fmt.Sprintf("%s: %x is a directory with %s (%.20q, %v)", what, handle, name, text, err))
				}
			}
		}
	}
	if len(mine) != len(theirs) {
		t.Fatalf("%x and %x", mine, theirs)
	}
	// Parts of one in the other, the number of the export and of the file system among them.
	for i := range mine {
		for j := i + 1; j <= len(mine); j++ {
			h := slices.Clone(mine)
			copy(h[i:j], theirs[i:j])
			try(fmt.Sprintf("bytes %d to %d of another's", i, j), h)
		}
	}
	// Files of the host, on its own file system, by their true handles.
	precious := filepath.Join(s.cfg.Dir, "exports.json")
	for _, path := range []string{"/", "/etc", s.cfg.Dir, precious} {
		f, _, err := unix.NameToHandleAt(unix.AT_FDCWD, path, 0)
		if err != nil {
			t.Skipf("no handles here: %v", err)
		}
		own, _, err := unix.NameToHandleAt(unix.AT_FDCWD, filepath.Dir(s.cfg.Dir), 0)
		if err != nil || own.Size() != f.Size() || f.Size() > len(mine) {
			t.Fatalf("%v: %d bytes", err, f.Size())
		}
		h := slices.Clone(mine)
		copy(h[len(h)-f.Size():], f.Bytes())
		try("its file of "+path, h)
		for _, id := range fileSystemIDs(t, path) {
			for at := 0; at+len(id) <= len(h)-f.Size(); at++ {
				g := slices.Clone(h)
				copy(g[at:], id)
				try(fmt.Sprintf("%s with %x at %d", path, id, at), g)
			}
		}
	}
	return got
}

// fileSystemIDs are numbers by which a server may know a file system.
func fileSystemIDs(t *testing.T, path string) (out [][]byte) {
	t.Helper()
	var fs unix.Statfs_t
	var st unix.Stat_t
	if err := errors.Join(unix.Statfs(path, &fs), unix.Stat(path, &st)); err != nil {
		t.Fatal(err)
	}
	var whole, parts, device xdr
	whole.u64(uint64(uint32(fs.Fsid.Val[0])) | uint64(uint32(fs.Fsid.Val[1]))<<32)
	parts.u32(uint32(fs.Fsid.Val[0]), uint32(fs.Fsid.Val[1]))
	device.u64(uint64(unix.Major(st.Dev))).u64(uint64(unix.Minor(st.Dev)))
	for _, x := range []xdr{whole, parts, device} {
		little := slices.Clone(x)
		for i := 0; i+8 <= len(little); i += 8 {
			slices.Reverse(little[i : i+8])
		}
		out = append(out, x, little)
	}
	return out
}

// TestNeighbours: machines with addresses in a row are let in, those beside are not.
func TestNeighbours(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	e := s.volume(t, "ours", "127.0.0.20", "127.0.0.21", "127.0.0.22", "127.0.0.23", "127.0.0.24")
	e.Clients[3].ReadOnly = true
	if err := s.Set(t.Context(), []Export{e}); err != nil {
		t.Fatal(err)
	}
	for n := 19; n <= 25; n++ {
		c := s.dial(t, fmt.Sprint("127.0.0.", n))
		dir, err := c.walk(e.Name)
		if (err == nil) != (n > 19 && n < 25) {
			t.Errorf("%d: %v", n, err)
		}
		if err != nil {
			continue
		}
		if err := c.create(dir, fmt.Sprint("f", n), "x"); (err == nil) != (n != 23) {
			t.Errorf("%d writes: %v", n, err)
		}
	}
}

// TestChange: exports come and go under the traffic of another; who is taken off the
// list has nothing from its next request on, and a reader does not write.
func TestChange(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	first, second := s.volume(t, "first", alice, bob), s.volume(t, "second", bob)
	if err := s.Set(t.Context(), []Export{first}); err != nil {
		t.Fatal(err)
	}
	pid := s.child.pid
	a, b := s.dial(t, alice), s.dial(t, bob)
	file, err := a.walk(first.Name, "secret")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.read(file); err != nil {
		t.Fatal(err)
	}
	stop, traffic := make(chan struct{}), make(chan error, 1)
	go func() {
		n := 0
		for {
			select {
			case <-stop:
				if n < 10 {
					traffic <- fmt.Errorf("%d reads", n)
				}
				close(traffic)
				return
			default:
			}
			if text, err := a.read(file); err != nil || text != "first" {
				traffic <- fmt.Errorf("read %d: %q, %w", n, text, err)
				close(traffic)
				return
			}
			n++
		}
	}()
	first.Clients = first.Clients[:1]
	for range 5 {
		if err := s.Set(t.Context(), []Export{second, first}); err != nil {
			t.Fatal(err)
		}
		if _, err := b.walk(second.Name, "secret"); err != nil {
			t.Error("a new export is not there:", err)
		}
		if _, err := b.read(file); err == nil {
			t.Error("he still reads what was taken from him")
		}
		if err := s.Set(t.Context(), []Export{first}); err != nil {
			t.Fatal(err)
		}
		if _, err := b.walk(second.Name, "secret"); err == nil {
			t.Error("an export that went is still there")
		}
	}
	close(stop)
	if err := <-traffic; err != nil {
		t.Error(err)
	}
	first.Clients[0].ReadOnly = true
	if err := s.Set(t.Context(), []Export{first}); err != nil {
		t.Fatal(err)
	}
	if dir, err := a.walk(first.Name); err != nil {
		t.Error(err)
	} else if err := a.create(dir, "more", "x"); !errors.Is(err, nfsReadOnly) {
		t.Errorf("a reader writes: %v", err)
	}
	if s.child.pid != pid {
		t.Error("another process serves")
	}
	// One that is not exported any more is not in use.
	if err := s.volumes.Erase(t.Context(), second.volume()); err != nil {
		t.Errorf("%v: %v", err, errors.Unwrap(err))
	}
}

// TestKilled: Muster and ganesha are killed, one after the other, and handles stay
// good.
func TestKilled(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	e, other := s.volume(t, "kept", alice), s.volume(t, "other", alice)
	if err := s.Set(t.Context(), []Export{e, other}); err != nil {
		t.Fatal(err)
	}
	c := s.dial(t, alice)
	file, err := c.walk(e.Name, "secret")
	if err != nil {
		t.Fatal(err)
	}
	pid := s.child.pid
	s.Close() // all that a killed Muster does
	if text, err := c.read(file); err != nil || text != "kept" {
		t.Fatal(text, err)
	}
	s.open(t)
	if s.child == nil || s.child.pid != pid {
		t.Fatalf("not found again: %+v", s.child)
	}
	// A Muster that was killed between starting it and anything else must not start two.
	s.drop()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	s.waitFor(t, func() bool { return s.child != nil && s.child.pid == pid })
	for range 2 {
		s.mu.Lock()
		err := s.child.signal(unix.SIGKILL)
		s.mu.Unlock()
		if err != nil {
			t.Fatal(err)
		}
		// While it is away, things change.
		if err := s.Set(t.Context(), []Export{e}); err != nil && muster.CodeOf(err) != muster.EInternal {
			t.Log("told while it was away:", err)
		}
		s.waitFor(t, func() bool { return s.child != nil && s.child.pid != pid && s.child.alive() })
		s.mu.Lock()
		pid = s.child.pid
		s.mu.Unlock()
		c = s.dial(t, alice)
		if text, err := c.read(file); err != nil || text != "kept" {
			t.Fatalf("its handle after a start: %q, %v", text, err)
		}
	}
	if _, err := c.walk(other.Name); err == nil {
		t.Error("what went meanwhile is still there")
	}
}

func (s *site) waitFor(t *testing.T, what func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		s.mu.Lock()
		ok := what()
		s.mu.Unlock()
		if ok {
			return
		}
		if time.Now().After(end) {
			t.Fatal("in vain")
		}
	}
}

// TestMoved: another port is another process; the exports and their handles stay.
// So do they when the host starts again and devices have other numbers.
func TestMoved(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	e, other := s.volume(t, "kept", alice), s.volume(t, "other", alice)
	// It is the second one, and will be alone: its number is not one that it gets anew.
	if err := errors.Join(s.Set(t.Context(), []Export{other}), s.Set(t.Context(), []Export{other, e})); err != nil {
		t.Fatal(err)
	}
	file, err := s.dial(t, alice).walk(e.Name, "secret")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.child.stop(10 * time.Second); err != nil {
		t.Fatal(err)
	}
	s.Close()
	if err := s.volumes.Unmount(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.cfg.Port = freePort(t)
	s.open(t)
	if s.child != nil {
		t.Fatal("found what has ended")
	}
	for _, x := range []Export{other, e} { // in the other order: other loop devices
		if _, err := s.volumes.Create(t.Context(), x.volume()); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Set(t.Context(), []Export{e}); err != nil {
		t.Fatal(err)
	}
	c := s.dial(t, alice)
	if text, err := c.read(file); err != nil || text != "kept" {
		now, _ := c.walk(e.Name, "secret")
		t.Fatalf("%q, %v: the handle was %x and is %x", text, err, file, now)
	}
}

// TestReused: a volume on the device that another one had is itself, and the handles of
// the other lead nowhere.
func TestReused(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	keep := s.volume(t, "kept", alice)
	var old [][]byte
	for i := range 6 {
		e := s.volume(t, fmt.Sprint("volume ", i), alice)
		if err := s.Set(t.Context(), []Export{keep, e}); err != nil {
			t.Fatal(err)
		}
		c := s.dial(t, alice)
		file, err := c.walk(e.Name, "secret")
		if err != nil {
			t.Fatal(err)
		}
		if text, err := c.read(file); err != nil || text != fmt.Sprint("volume ", i) {
			t.Errorf("volume %d holds %q, %v", i, text, err)
		}
		for _, h := range old {
			if text, err := c.read(h); err == nil {
				t.Errorf("a handle of a volume that is gone reads %q", text)
			}
		}
		old = append(old, file)
		if text, err := c.walk(keep.Name, "secret"); err != nil {
			t.Error(text, err)
		}
		if err := errors.Join(s.Set(t.Context(), []Export{keep}), s.volumes.Erase(t.Context(), e.volume())); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRefused: what a handle could lead out of is not exported, and the rest is.
func TestRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	good := s.volume(t, "good", alice)
	host := Export{Name: "host", Path: filepath.Dir(s.cfg.Dir), Clients: good.Clients}
	gone := Export{Name: "gone", Path: filepath.Dir(good.Path) + "/none", Clients: good.Clients}
	part := Export{Name: "part", Path: good.Path, Clients: []Client{{Address: netip.MustParseAddr(bob)}}}
	err := s.Set(t.Context(), []Export{good, host, gone, part})
	for _, want := range []string{"host cannot", "gone cannot", "part cannot"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			// Of two on one file system, the first one is served.
			if want == "part cannot" && strings.Contains(err.Error(), good.Name+" cannot") {
				continue
			}
			t.Errorf("%s: %v", want, err)
		}
	}
	if s.Failing() == nil {
		t.Error("nobody is told later")
	}
	if _, err := s.dial(t, alice).walk("host"); err == nil {
		t.Error("the host's own file system is served")
	}
	if err := errors.Join(s.Set(t.Context(), []Export{good}), s.Failing()); err != nil {
		t.Error(err)
	}
	for _, bad := range []Export{
		{Name: "../x", Path: good.Path}, {Name: "a b", Path: good.Path}, {Name: "", Path: good.Path}, {Name: "x", Path: "relative"},
		{Name: "x", Path: `/a"; }`}, {Name: "x", Path: "/a/../b"}, {Name: "x", Path: good.Path, Clients: []Client{{}}},
		{Name: "x", Path: good.Path, Clients: []Client{{Address: netip.MustParseAddr("0.0.0.0")}}},
		{Name: "x", Path: good.Path, Clients: []Client{{Address: netip.MustParseAddr("fd00::1")}}},
	} {
		if err := s.Set(t.Context(), []Export{bad}); muster.CodeOf(err) != muster.EInvalid {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if text, err := s.dial(t, alice).walk(good.Name, "secret"); err != nil {
		t.Error("what was served before is gone:", text, err)
	}
}
