package page_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// screenshot is what docs show.
const screenshot = "../../docs/users/pictures/certificate.png"

// browser is Chromium without a screen. Whatever it asks of a network is refused and
// written down.
type browser struct {
	program, dir, proxy string

	mu    sync.Mutex
	asked []string
}

func chromium(t *testing.T) *browser {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a browser: not with -short")
	}
	b := &browser{dir: t.TempDir()}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			b.program = path
			break
		}
	}
	if b.program == "" {
		t.Skip("no chromium: scripts/setup test installs it")
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.asked = append(b.asked, r.Method+" "+r.Host+" "+r.URL.String())
		http.Error(w, "nothing here", http.StatusForbidden)
	}))
	t.Cleanup(s.Close)
	b.proxy = s.URL
	return b
}

// run opens a page, and gives what the browser printed.
func (b *browser) run(t *testing.T, html []byte, args ...string) []byte {
	t.Helper()
	file := filepath.Join(b.dir, "page.html")
	must(t, os.WriteFile(file, html, 0o600))
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	all := append([]string{
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run", "--disable-sync", "--disable-extensions",
		"--disable-background-networking", "--disable-component-update", "--disable-default-apps", "--disable-domain-reliability", "--metrics-recording-only",
		"--force-color-profile=srgb", "--user-data-dir=" + filepath.Join(b.dir, "profile"), "--proxy-server=" + b.proxy, "--proxy-bypass-list=<-loopback>",
	}, append(args, "file://"+file)...)
	c := exec.CommandContext(ctx, b.program, all...)
	// All of its processes end with it.
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	c.WaitDelay = 10 * time.Second
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	if c.Process != nil { // whoever is left writes into the profile
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
	}
	if err != nil {
		t.Fatalf("%s: %v\n%.4000s", b.program, err, stderr.Bytes())
	}
	for line := range strings.Lines(stderr.String()) {
		if strings.Contains(line, "Content Security Policy") || strings.Contains(line, "CONSOLE") {
			t.Errorf("the browser complains: %s", line)
		}
	}
	return out
}

// outside are the requests that left the browser for the page: what Chromium wants of
// its makers is not the page's.
func (b *browser) outside() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var list []string
	for _, a := range b.asked {
		own := false
		for _, host := range []string{"google.com", "googleapis.com", "gstatic.com", "gvt1.com", "googleusercontent.com"} {
			own = own || strings.Contains(a, host)
		}
		if !own {
			list = append(list, a)
		}
	}
	return list
}

// A real browser shows the page, with the style and all words, and asks nobody for
// anything. MUSTER_UPDATE=1 writes the picture in docs anew.
func TestScreenshot(t *testing.T) {
	t.Parallel()
	b := chromium(t)
	html := write(t, example(t, 8))
	dom := string(b.run(t, html, "--dump-dom"))
	for _, want := range []string{"Slower than it should be", "n05 is slower", "277 GB/s", "Bandwidth between nodes", "</svg>", "What the numbers mean"} {
		if !strings.Contains(dom, want) {
			t.Errorf("the browser does not show %q", want)
		}
	}
	shot := filepath.Join(b.dir, "page.png")
	b.run(t, html, "--screenshot="+shot, "--window-size=1000,3720")
	data, err := os.ReadFile(shot)
	must(t, err)
	img, err := png.Decode(bytes.NewReader(data))
	must(t, err)
	colours, ink := inked(img)
	// The style is there: blue bars, orange ones, dark cells and much paper.
	if size := img.Bounds(); size.Dx() != 1000 || size.Dy() != 3720 || colours < 200 || ink < 0.02 || ink > 0.6 {
		t.Errorf("the picture of %v has %d colours and %.3f of it is no paper", size, colours, ink)
	}
	for name, want := range map[string]color.RGBA{"a bar": {0xa9, 0xc4, 0xdd, 255}, "a low bar": {0xe8, 0xa1, 0x7e, 255}} {
		if !has(img, want) {
			t.Errorf("there is no colour of %s", name)
		}
	}
	if list := b.outside(); len(list) > 0 {
		t.Errorf("the page asks for %v", list)
	}
	if os.Getenv("MUSTER_UPDATE") != "" {
		small := indexed(img)
		const most = 300 << 10
		if len(small) > most {
			t.Fatalf("the picture has %d bytes", len(small))
		}
		must(t, os.MkdirAll(filepath.Dir(screenshot), 0o755))
		must(t, os.WriteFile(screenshot, small, 0o644))
	}
}

// A real browser runs nothing of what a certificate says, and loads nothing.
func TestHostileInBrowser(t *testing.T) {
	t.Parallel()
	b := chromium(t)
	var p paper
	n, k := 0, 0
	texts := append(hostile(), `"><img src="http://outside.example/x.png">`, `<link rel=stylesheet href=http://outside.example/x.css>`, `<base href=http://outside.example/>`)
	for _, v := range []any{&p.cluster, &p.nodes} {
		fill(reflect.ValueOf(v).Elem(), func() string { k++; return texts[k%len(texts)] }, &n)
	}
	p.cluster.Kind = "cluster"
	dom := string(b.run(t, write(t, p), "--dump-dom"))
	if !strings.Contains(dom, "outside.example") || strings.Contains(dom, "<title>owned") || strings.Contains(dom, "<script") || strings.Contains(dom, "<img") || strings.Contains(dom, "<link") {
		t.Errorf("something is more than text: %.3000s", dom)
	}
	if list := b.outside(); len(list) > 0 {
		t.Errorf("the page asks for %v", list)
	}
	// The test would see it.
	b.run(t, []byte(`<!DOCTYPE html><img src="http://outside.example/x.png">`), "--dump-dom")
	if list := fmt.Sprint(b.outside()); !strings.Contains(list, "outside.example/x.png") {
		t.Errorf("a page that loads something is not told from others: %s", list)
	}
}

// inked counts colours, and the share of what is not the colour of the paper.
func inked(img image.Image) (colours int, ink float64) {
	seen := map[color.RGBA]int{}
	r := img.Bounds()
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			seen[color.RGBAModel.Convert(img.At(x, y)).(color.RGBA)]++
		}
	}
	most := 0
	for _, n := range seen {
		most = max(most, n)
	}
	return len(seen), 1 - float64(most)/float64(r.Dx()*r.Dy())
}

func has(img image.Image, want color.RGBA) bool {
	r := img.Bounds()
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			if color.RGBAModel.Convert(img.At(x, y)).(color.RGBA) == want {
				return true
			}
		}
	}
	return false
}

// indexed is the picture with at most 256 colours: those that are there most often,
// and for any other the nearest of them.
func indexed(img image.Image) []byte {
	count := map[color.RGBA]int{}
	r := img.Bounds()
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			count[color.RGBAModel.Convert(img.At(x, y)).(color.RGBA)]++
		}
	}
	order := byCount(count)
	var palette color.Palette
	for _, c := range order[:min(256, len(order))] {
		palette = append(palette, c)
	}
	near := map[color.RGBA]uint8{}
	out := image.NewPaletted(r, palette)
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			c := color.RGBAModel.Convert(img.At(x, y)).(color.RGBA)
			i, ok := near[c]
			if !ok {
				i = uint8(palette.Index(c))
				near[c] = i
			}
			out.SetColorIndex(x, y, i)
		}
	}
	var b bytes.Buffer
	enc := png.Encoder{CompressionLevel: png.BestCompression}
	_ = enc.Encode(&b, out)
	return b.Bytes()
}

func byCount(count map[color.RGBA]int) []color.RGBA {
	order := make([]color.RGBA, 0, len(count))
	for c := range count {
		order = append(order, c)
	}
	slices.SortFunc(order, func(a, b color.RGBA) int {
		number := func(c color.RGBA) int { return int(c.R)<<16 | int(c.G)<<8 | int(c.B) }
		return cmp.Or(count[b]-count[a], number(a)-number(b))
	})
	return order
}
