package httpboot

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/muster-hpc/muster/internal/connlimit"
)

// orders is a Boots: each number is for one address.
type orders map[string]struct {
	at   netip.Addr
	boot Boot
}

func (o orders) Boot(number string, from netip.Addr) (Boot, bool) {
	e, ok := o[number]
	return e.boot, ok && e.at == from
}

type rig struct {
	*Server
	kernel, initramfs []byte
	mu                sync.Mutex
	notes             []string
}

func (r *rig) said() string { r.mu.Lock(); defer r.mu.Unlock(); return strings.Join(r.notes, "\n") }

func random(n int) []byte {
	b := make([]byte, n)
	r := rand.New(rand.NewPCG(7, uint64(n)))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func newRig(t testing.TB, change ...func(*Config)) *rig {
	t.Helper()
	dir := t.TempDir()
	write := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	r := &rig{}
	b := example()
	r.kernel = random(100_003)
	b.Kernel = []string{write("kernel", r.kernel)}
	for i, n := range []int{1001, 4096, 0, 7, 300_002} { // each but the last is padded to four bytes
		part := random(n)
		b.Initramfs = append(b.Initramfs, write(fmt.Sprint("part", i), part))
		for len(r.initramfs)%4 != 0 {
			r.initramfs = append(r.initramfs, 0)
		}
		r.initramfs = append(r.initramfs, part...)
	}
	gone := b
	gone.Number, gone.Kernel = "g0ne", []string{filepath.Join(dir, "nothing")}
	local := netip.MustParseAddr("127.0.0.1")
	other := b
	other.Number, other.Root = "other", b.Kernel[0]
	c := Config{
		Address: local, Base: "http://127.0.0.1/", Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/24"), netip.MustParsePrefix("192.0.2.0/24")},
		Boots:  orders{b.Number: {local, b}, "other": {netip.MustParseAddr("127.0.0.2"), other}, "g0ne": {local, gone}},
		Loader: map[string][]byte{"snponly.efi": random(5000)},
		Note: func(_ netip.Addr, stage, text string) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.notes = append(r.notes, stage+" "+text)
		},
	}
	for _, f := range change {
		f(&c)
	}
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	r.Server = s
	return r
}

// serve opens a real port and returns its URL.
func (r *rig) serve(t testing.TB) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	l, err := r.Listen(ctx)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- r.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return "http://" + l.Addr().String()
}

func get(t testing.TB, url, header string) (*http.Response, []byte) {
	t.Helper()
	req, _ := http.NewRequest(http.MethodGet, url, nil)
	if header != "" {
		req.Header.Set("Range", header)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, b
}

func TestABoot(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	at := r.serve(t)
	if res, b := get(t, at+"/boot/b1a2c3/script", ""); res.StatusCode != http.StatusOK || !strings.HasPrefix(string(b), "#!ipxe\n") || !strings.Contains(string(b), "kernel http://127.0.0.1/boot/b1a2c3/kernel initrd=initramfs muster.server=") {
		t.Errorf("script: %v %s", res.Status, b)
	}
	for path, want := range map[string][]byte{"/boot/b1a2c3/kernel": r.kernel, "/boot/b1a2c3/initramfs": r.initramfs, "/loader/snponly.efi": r.Loader["snponly.efi"]} {
		res, b := get(t, at+path, "")
		if res.StatusCode != http.StatusOK || !bytes.Equal(b, want) || res.ContentLength != int64(len(want)) {
			t.Errorf("%s: %v, %d bytes of %d", path, res.Status, len(b), len(want))
		}
		head, err := http.Head(at + path)
		if err != nil || head.StatusCode != http.StatusOK || head.ContentLength != int64(len(want)) || head.Header.Get("Accept-Ranges") != "bytes" {
			t.Errorf("HEAD %s: %v %v", path, head, err)
		}
	}
	if !strings.Contains(r.said(), "http sent initramfs, ") {
		t.Errorf("operator is told %q", r.said())
	}
}

func TestWhatIsNotFound(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	at := r.serve(t)
	for _, path := range []string{
		"/", "/boot", "/boot/", "/boot/b1a2c3", "/boot/b1a2c3/", "/boot/b1a2c3/part0", "/boot/nothing/script", "/boot/other/script", "/boot/other/kernel", "/boot/other/initramfs", "/boot/b1a2c3/root", "/boot/other/root",
		"/boot/b1a2c3/kernel/", "/loader/", "/loader/..%2f..%2fetc%2fpasswd", "/boot/..%2f..%2fetc/passwd", "/boot/B1A2C3/script", "/boot/b1a2c3//script", "/x",
	} {
		if res, b := get(t, at+path, ""); res.StatusCode != http.StatusNotFound || string(b) != "404 page not found\n" {
			t.Errorf("%s: %v %q", path, res.Status, b)
		}
	}
	if res, _ := get(t, at+"/boot/g0ne/kernel", ""); res.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a kernel that is gone: %v", res.Status)
	}
	if !strings.Contains(r.said(), "cannot give kernel: ") {
		t.Errorf("operator is told %q", r.said())
	}
	res, err := http.Post(at+"/boot/b1a2c3/kernel", "text/plain", strings.NewReader("x"))
	if err != nil || res.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST: %v %v", res, err)
	}
}

// FuzzRange holds ranges against Go's own file server.
func FuzzRange(f *testing.F) {
	for _, s := range []string{"bytes=0-0", "bytes=1000-", "bytes=-5", "bytes=999-2000000", "bytes=5-4", "bytes=-0", "bytes=1-2,4-5", "lines=1-2", "bytes=99999999999999999999-", "bytes=+1-2"} {
		f.Add(s)
	}
	r := newRig(f)
	one := regexp.MustCompile(`^bytes=([0-9]{1,15}-[0-9]{0,15}|-0*[1-9][0-9]{0,14})$`)
	f.Fuzz(func(t *testing.T, header string) {
		ask := func(h http.Handler) *httptest.ResponseRecorder {
			req := httptest.NewRequest(http.MethodGet, "/boot/b1a2c3/initramfs", nil)
			req.RemoteAddr = "127.0.0.1:1"
			req.Header.Set("Range", header)
			w := httptest.NewRecorder()
			h.ServeHTTP(deadlines{w}, req)
			return w
		}
		got := ask(r)
		if !one.MatchString(header) {
			// Go's own is more generous than the grammar of RFC 9110; here what is
			// not in it is answered with the whole, or refused.
			if got.Code == http.StatusPartialContent || got.Code == http.StatusOK && !bytes.Equal(got.Body.Bytes(), r.initramfs) {
				t.Fatalf("%q: %d", header, got.Code)
			}
			return
		}
		want := ask(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			http.ServeContent(w, req, "", time.Time{}, bytes.NewReader(r.initramfs))
		}))
		if got.Code == http.StatusOK && bytes.Equal(got.Body.Bytes(), r.initramfs) && (want.Code == http.StatusRequestedRangeNotSatisfiable || want.Code == http.StatusOK) {
			return // a server may ignore what it does not understand
		}
		if got.Code != want.Code || got.Code != http.StatusRequestedRangeNotSatisfiable && !bytes.Equal(got.Body.Bytes(), want.Body.Bytes()) || got.Header().Get("Content-Range") != want.Header().Get("Content-Range") {
			t.Fatalf("%q: %d %s (%d bytes), not %d %s (%d bytes)", header, got.Code, got.Header().Get("Content-Range"), got.Body.Len(), want.Code, want.Header().Get("Content-Range"), want.Body.Len())
		}
	})
}

// deadlines is a recorder that takes deadlines.
type deadlines struct{ http.ResponseWriter }

func (deadlines) SetWriteDeadline(time.Time) error { return nil }

func TestRanges(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	at := r.serve(t) + "/boot/b1a2c3/initramfs"
	n := len(r.initramfs)
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 100 {
		a := rnd.IntN(n)
		b := a + rnd.IntN(n-a)
		res, got := get(t, at, fmt.Sprintf("bytes=%d-%d", a, b))
		if res.StatusCode != http.StatusPartialContent || !bytes.Equal(got, r.initramfs[a:b+1]) || res.Header.Get("Content-Range") != fmt.Sprintf("bytes %d-%d/%d", a, b, n) {
			t.Fatalf("%d-%d: %v, %d bytes", a, b, res.Status, len(got))
		}
	}
	if res, _ := get(t, at, "bytes="+strconv.Itoa(n)+"-"); res.StatusCode != http.StatusRequestedRangeNotSatisfiable {
		t.Errorf("behind the end: %v", res.Status)
	}
}

func FuzzPath(f *testing.F) {
	for _, s := range []string{"/boot/b1a2c3/script", "/boot/other/script", "/loader/snponly.efi", "/loader/../x", "/boot//", "/boot/b1a2c3/kernel"} {
		f.Add(s)
	}
	r := newRig(f)
	allowed := map[string]bool{"/boot/b1a2c3/script": true, "/boot/b1a2c3/kernel": true, "/boot/b1a2c3/initramfs": true, "/loader/snponly.efi": true, "/boot/g0ne/kernel": true, "/boot/g0ne/script": true, "/boot/g0ne/initramfs": true}
	f.Fuzz(func(t *testing.T, path string) {
		_, c, err := r.find(path, netip.MustParseAddr("127.0.0.1"))
		if c != nil {
			c.close()
		}
		if (c != nil || err != nil) && !allowed[path] {
			t.Fatalf("%q is found", path)
		}
		if _, c, _ := r.find(path, netip.MustParseAddr("127.0.0.3")); c != nil && !strings.HasPrefix(path, "/loader/") {
			t.Fatalf("%q is found by a stranger", path)
		}
	})
}

func TestAClientThatStalls(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *Config) { c.Stall = 300 * time.Millisecond })
	big := filepath.Join(t.TempDir(), "big")
	f, err := os.Create(big)
	if err != nil {
		t.Fatal(err)
	}
	f.Truncate(1 << 30)
	f.Close()
	b := example()
	b.Kernel = []string{big}
	r.Boots.(orders)["b1a2c3"] = struct {
		at   netip.Addr
		boot Boot
	}{r.Address, b}
	at := strings.TrimPrefix(r.serve(t), "http://")
	stalled, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer stalled.Close()
	fmt.Fprintf(stalled, "GET /boot/b1a2c3/kernel HTTP/1.1\r\nHost: x\r\n\r\n")
	// A slow but steady one is served meanwhile, for longer than the stall.
	steady, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer steady.Close()
	fmt.Fprintf(steady, "GET /boot/b1a2c3/kernel HTTP/1.1\r\nHost: x\r\n\r\n")
	buf := make([]byte, 4<<20)
	for range 10 {
		if _, err := io.ReadFull(steady, buf); err != nil {
			t.Fatalf("a steady client was cut off: %v", err)
		}
		time.Sleep(100 * time.Millisecond)
	}
	for range 100 {
		if strings.Contains(r.said(), "took nothing for too long") {
			n, _ := io.Copy(io.Discard, stalled)
			if n >= 1<<30 {
				t.Error("all of it was sent")
			}
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("not cut off: %q", r.said())
}

func TestTooManyConnections(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *Config) { c.PerSource = 2; c.Connections = 3 })
	at := strings.TrimPrefix(r.serve(t), "http://")
	dial := func(from string) net.Conn {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		c, err := d.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() }) // kept until then: what nobody holds is closed
		return c
	}
	lives := func(c net.Conn) bool {
		fmt.Fprintf(c, "HEAD /loader/snponly.efi HTTP/1.1\r\nHost: x\r\n\r\n")
		c.SetReadDeadline(time.Now().Add(time.Minute))
		n, err := c.Read(make([]byte, 12))
		return err == nil && n > 0
	}
	a, b := dial("127.0.0.1"), dial("127.0.0.1")
	if !lives(a) || !lives(b) {
		t.Fatal("not served")
	}
	if lives(dial("127.0.0.1")) {
		t.Error("a third connection of one machine")
	}
	c := dial("127.0.0.5")
	if !lives(c) {
		t.Error("another machine is kept out")
	}
	if lives(dial("127.0.0.6")) {
		t.Error("a fourth connection of three")
	}
	if lives(dial("127.0.7.1")) {
		t.Error("a network that was not given is served")
	}
	a.Close()
	for range 50 {
		if d := dial("127.0.0.6"); lives(d) {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Error("a place that was given back is not used")
}

// TestFilesAreSentByTheKernel: the connection must stay one that net/http hands
// files to.
func TestFilesAreSentByTheKernel(t *testing.T) {
	t.Parallel()
	var c net.Conn = &connlimit.Conn{}
	if _, ok := c.(io.ReaderFrom); !ok {
		t.Error("files would be copied through this process")
	}
}

func BenchmarkKernel(b *testing.B) {
	r := newRig(b)
	at := r.serve(b) + "/boot/b1a2c3/kernel"
	b.SetBytes(int64(len(r.kernel)))
	b.ReportAllocs()
	for b.Loop() {
		res, err := http.Get(at)
		if err != nil {
			b.Fatal(err)
		}
		io.Copy(io.Discard, res.Body)
		res.Body.Close()
	}
}

// What an operator is told of a file that comes in pieces is the size of each.
func TestNotesSayHowMuchWasSent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	url := r.serve(t) + "/boot/b1a2c3/kernel"
	get(t, url, "bytes=5-14")
	get(t, url, "")
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Millisecond) {
		r.mu.Lock()
		notes := strings.Join(r.notes, "\n")
		r.mu.Unlock()
		if strings.Contains(notes, "http sent kernel, 10 of 100003 bytes in ") && strings.Contains(notes, "http sent kernel, 100003 bytes in ") {
			return
		}
		if time.Now().After(end) {
			t.Fatal(notes)
		}
	}
}
