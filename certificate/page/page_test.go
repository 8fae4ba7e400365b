package page_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/certificate/page"
)

func write(t testing.TB, p paper) []byte {
	t.Helper()
	var b bytes.Buffer
	must(t, page.Write(&b, p.cluster, p.nodes, p.more))
	return b.Bytes()
}

// element is one of a page, with the words in it.
type element struct {
	name  string
	attrs map[string]string
	text  string
}

// parse takes a page apart; the page is well-formed, so that no browser guesses.
func parse(t testing.TB, html []byte) []element {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(html))
	var all []element
	var open []int
	var text strings.Builder
	from := map[int]int{}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("the page is not well-formed: %v\n%s", err, around(html, d.InputOffset()))
		}
		switch x := token.(type) {
		case xml.StartElement:
			e := element{name: x.Name.Local, attrs: map[string]string{}}
			for _, a := range x.Attr {
				e.attrs[a.Name.Local] = a.Value
			}
			from[len(all)] = text.Len()
			open = append(open, len(all))
			all = append(all, e)
		case xml.EndElement:
			i := open[len(open)-1]
			all[i].text = text.String()[from[i]:]
			open = open[:len(open)-1]
		case xml.CharData:
			text.Write(x)
		}
	}
	if len(open) > 0 || len(all) == 0 {
		t.Fatal("the page is cut off")
	}
	return all
}

func around(html []byte, at int64) []byte {
	return html[max(0, at-200):min(int64(len(html)), at+80)]
}

// plainNames are all elements that a page has.
func plainNames() []string {
	return strings.Fields("html head meta title style body main header section footer h1 h2 h3 p b strong span code div dl dt dd ol ul li br " +
		"table thead tbody tr th td details summary figure figcaption svg rect line path text")
}

// harmless checks that a page can do nothing and needs nothing.
func harmless(t testing.TB, html []byte) []element {
	t.Helper()
	all := parse(t, html)
	for _, e := range all {
		if !slices.Contains(plainNames(), e.name) {
			t.Fatalf("the page has an element %s: %.200q", e.name, e.text)
		}
		for name, value := range e.attrs {
			switch name {
			case "class", "lang", "charset", "http-equiv", "content", "name", "viewBox", "role", "aria-label", "aria-hidden", "scope", "open", "title", "xmlns", "d":
			case "x", "y", "width", "height", "x1", "x2", "y1", "y2":
				if v, err := strconv.ParseFloat(value, 64); err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
					t.Fatalf("%s has %s=%q", e.name, name, value)
				}
			default:
				t.Fatalf("%s has an attribute %s=%q", e.name, name, value)
			}
		}
		switch {
		case e.name == "svg" && (e.attrs["role"] != "img" || len(e.attrs["aria-label"]) < 20 || e.attrs["viewBox"] == ""):
			t.Fatalf("a picture has no words: %v", e.attrs)
		case e.name == "style" && strings.ContainsAny(e.text, "<&@") && regexp.MustCompile(`url\(|@import|expression`).MatchString(e.text):
			t.Fatal("the style loads something")
		case e.name == "path" && regexp.MustCompile(`[^-MLHVZa0-9. l]`).MatchString(e.attrs["d"]):
			t.Fatalf("a path is %q", e.attrs["d"])
		}
	}
	if n := bytes.Count(html, []byte("Content-Security-Policy")); n == 0 || !bytes.Contains(html, []byte("default-src &#39;none&#39;")) {
		t.Fatal("there is no policy")
	}
	return all
}

// words are all texts of a page, with single spaces.
func words(all []element) string { return strings.Join(strings.Fields(all[0].text), " ") }

// With any number of nodes there is a page that is well-formed, does nothing, needs
// nothing, and is the same each time.
func TestPagesOfAnySize(t *testing.T) {
	t.Parallel()
	for _, nodes := range []int{1, 2, 8, 17, 41} {
		t.Run(fmt.Sprint(nodes), func(t *testing.T) {
			t.Parallel()
			p := example(t, nodes)
			html := write(t, p)
			text := words(harmless(t, html))
			for _, n := range p.nodes {
				if !strings.Contains(text, n.Node) || !strings.Contains(text, string(n.ID)) {
					t.Errorf("nothing of %s", n.Node)
				}
			}
			if strings.Contains(text, "newer program") {
				t.Error("a metric is not explained")
			}
			slices.Reverse(p.nodes)
			if !bytes.Equal(html, write(t, p)) {
				t.Error("the page depends on the order of files")
			}
			p.nodes = p.nodes[:len(p.nodes)/2]
			harmless(t, write(t, p))
		})
	}
}

// A reader learns the verdict, who is slow and by how much, what was left out, and
// how to check it.
func TestPageSays(t *testing.T) {
	t.Parallel()
	p := example(t, 8)
	text := words(harmless(t, write(t, p)))
	for _, want := range []string{
		"Slower than it should be", "7 nodes are as fast as expected; n05 is slower.", "Certified: nobody else used this hardware", "class epyc-9354", "c-23456789bc",
		"before the cluster was handed over", "quick, 18 launches of the probe", "1 March 2026, 12:00 UTC to 30 May 2026, 12:00 UTC", "server b7k2",
		"Verified. The signatures were genuine and in force on 2 March 2026", "muster certificate verify", string(p.more.Digest), p.more.Key, string(p.cluster.ID),
		"n05 · Memory bandwidth, triad: 277 GB/s, where 335 GB/s is normal — 17 % of the speed is missing. Probable cause: a memory channel without a module",
		"Seen again alone and against good partners.", "disks: a quick validation leaves files out", "Every pair was measured.", "AMD EPYC 9354",
		"n[01-04,06-08]: 384 GiB n05: 352 GiB", "Ring latency, random", "What the numbers mean", "L2 1 MiB, L1 32 KiB of each core", "expected 1.51 TFLOP/s",
		"In bytes per second; more is better.", "In seconds; less is better.", "random, seed 18446744073709551615",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	two := words(harmless(t, write(t, example(t, 2))))
	for _, want := range []string{"Both nodes are as fast as they should be.", "With nothing to compare it with: “Memory latency, 1 GiB”", "Nothing: no figure is worse than chance explains."} {
		if !strings.Contains(two, want) {
			t.Errorf("the page of two nodes does not say %q", want)
		}
	}
	p.more.Verified = time.Time{}
	p.cluster.Certified, p.cluster.Caveats = false, []muster.Caveat{{Code: "shared", Text: "others can use the same processors"}}
	text = words(harmless(t, write(t, p)))
	for _, want := range []string{"Not verified.", "Performance report, not certified", "others can use the same processors (shared)", "do not compare machines by this report"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if strings.Contains(text, "Verified. The") {
		t.Error("the page claims to be verified")
	}
}

// A node has a page, too.
func TestNodePage(t *testing.T) {
	t.Parallel()
	p := example(t, 8)
	var b bytes.Buffer
	must(t, page.Write(&b, p.nodes[4], nil, p.more))
	text := words(harmless(t, b.Bytes()))
	for _, want := range []string{"n05 of cfd", "Slower than it should be", "epyc-15", "Memory bandwidth, triad, 32 threads", "Off by", "−17 %", "history of the class"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

// Pictures show what was measured: the slow node has the short bar, the dark cells
// and the sign that is seen without colours.
func TestPicturesAreTrue(t *testing.T) {
	t.Parallel()
	all := parse(t, write(t, example(t, 8)))
	picture := func(title string) []element {
		t.Helper()
		for i, e := range all {
			if e.name == "svg" && strings.HasPrefix(e.attrs["aria-label"], title) {
				end := i + 1
				for end < len(all) && all[end].name != "figure" && all[end].name != "section" {
					end++
				}
				return all[i:end]
			}
		}
		t.Fatalf("there is no picture of %s", title)
		return nil
	}
	number := func(s string) float64 {
		v, err := strconv.ParseFloat(s, 64)
		must(t, err)
		return v
	}
	var good, low []float64
	signs := 0
	for _, e := range picture("Memory bandwidth, triad") {
		switch {
		case e.attrs["class"] == "bar pass":
			good = append(good, number(e.attrs["width"]))
		case e.attrs["class"] == "bar low":
			low = append(low, number(e.attrs["width"]))
		case e.text == "▼":
			signs++
		}
	}
	if len(good) != 7 || len(low) != 1 || signs != 1 || math.Abs(low[0]/slices.Min(good)-277.0/331) > 0.02 {
		t.Errorf("bars %v and %v, %d signs", good, low, signs)
	}
	dark := map[string]int{} // pairs by how dark they are
	for _, e := range picture("Bandwidth between nodes") {
		if class := e.attrs["class"]; e.name == "rect" && strings.HasPrefix(class, "heat h") && strings.Contains(e.attrs["aria-label"]+e.text, "n05") {
			dark["n05 "+class]++
		} else if e.name == "rect" && strings.HasPrefix(class, "heat h") && e.text != "" {
			dark["other "+class]++
		}
	}
	if dark["other heat h0"] != 42 || dark["n05 heat h3"] != 14 {
		t.Errorf("cells %v", dark)
	}
	for _, title := range []string{"Time of a message", "Bandwidth by size", "Memory latency by size", "Noise of the", "Processors busy", "The machine of n05", "Latency between nodes"} {
		if len(picture(title)) < 10 {
			t.Errorf("the picture of %s is empty", title)
		}
	}
}

// hostile are texts that would like to be more.
func hostile() []string {
	return []string{
		`"><script>document.title='owned'</script>`, `</style><script>alert(1)</script>`, `</title></svg><img src=x onerror=alert(1)>`, `' onload='alert(1)`,
		`javascript:alert(1)`, `{{.Style}}`, `--><!--`, `]]>`, "\x00\x01\x1b[2J", "\u202egnp.exe", "\xff\xfe", strings.Repeat("W", 5000), `\u003cscript\u003e`, `&lt;b&gt;&#0;&bogus;`,
		`url(http://outside.example/x)`, `expression(alert(1))`,
	}
}

// fill puts something into every field of a value.
func fill(v reflect.Value, text func() string, n *int) {
	*n++
	switch v.Kind() {
	case reflect.String:
		v.SetString(text())
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n % 77))
	case reflect.Float64:
		v.SetFloat(float64(*n%13) + 0.5)
	case reflect.Bool:
		v.SetBool(*n%2 == 0)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), text, n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 3, 3))
		for i := range v.Len() {
			fill(v.Index(i), text, n)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(noon().Add(time.Duration(*n) * time.Minute)))
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i), text, n)
		}
	}
}

// Markup in any text of a certificate is text.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	for _, text := range hostile() {
		for _, kind := range []muster.CertificateKind{muster.CertifiesCluster, muster.CertifiesNode} {
			var p paper
			n := 0
			for _, v := range []any{&p.cluster, &p.nodes, &p.more} {
				fill(reflect.ValueOf(v).Elem(), func() string { return text }, &n)
			}
			p.cluster.Kind = kind
			all := harmless(t, write(t, p))
			if got := words(all); strings.ContainsAny(got, "\x00\x01\x1b\u202e") {
				t.Errorf("%q stays as it is", text)
			}
		}
	}
	// What is left of real figures with hostile names is drawn.
	p := example(t, 3)
	for i, text := range hostile()[:3] {
		p.cluster.Nodes[i].Node, p.nodes[i].Node = text, text
	}
	if text := words(harmless(t, write(t, p))); !strings.Contains(text, `"><script>document.title='owned'</script>`) {
		t.Error("the name is not shown as it is")
	}
}

// Figures that cannot be are drawn as far as they can.
func TestOddFigures(t *testing.T) {
	t.Parallel()
	odd := []float64{0, -1, 1e-320, 1e308, -1e308, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, 5e-324}
	for i := 0; i < len(odd); i += 3 {
		p := example(t, 4)
		k := i
		next := func() float64 { k++; return odd[k%len(odd)] }
		for n := range p.nodes {
			for m := range p.nodes[n].Metrics {
				x := &p.nodes[n].Metrics[m]
				x.Median, x.Min, x.Max, x.Size = next(), next(), next(), int64(next())
				x.Interval = &muster.Interval{Low: next(), High: next(), Level: next()}
				x.Reference = &muster.Reference{Value: next()}
				x.Detectable = ptr(next())
			}
			for u := range p.nodes[n].Use {
				p.nodes[n].Use[u].Step = next()
				p.nodes[n].Use[u].CPU[3] = next()
			}
		}
		for f := range p.cluster.Pairs.Figures {
			p.cluster.Pairs.Figures[f].Value = next()
		}
		for f := range p.cluster.Findings {
			x := &p.cluster.Findings[f]
			x.Seen, x.Expected, x.Loss, x.Chance = ptr(next()), ptr(next()), ptr(next()), ptr(next())
		}
		harmless(t, write(t, p))
	}
}

// Series of any length and step are drawn.
func TestOddUse(t *testing.T) {
	t.Parallel()
	for _, nodes := range []int{1, 30} {
		for _, step := range []float64{5e-324, 1e-12, 1, 1e6, math.MaxFloat64} {
			p := paper{cluster: muster.Certificate{Kind: muster.CertifiesCluster}}
			for i := range nodes {
				p.cluster.Use = append(p.cluster.Use, muster.UseSeries{
					Node: fmt.Sprint(i), Start: noon().Add(time.Duration(i) * time.Second), Step: step, CPU: []float64{1, 2, 1e300, 0},
				})
			}
			harmless(t, write(t, p))
		}
	}
}

// A page of a large cluster is still one that can be opened and sent.
func TestLargeClusters(t *testing.T) {
	t.Parallel()
	const most = 3 << 20
	html := write(t, enlarged(example(t, 8), 1024))
	if len(html) > most {
		t.Errorf("the page of 1,024 nodes has %d bytes", len(html))
	}
	text := words(harmless(t, html))
	for _, want := range []string{"896 nodes are as fast as expected; 128 nodes are slower.", "6144 of 523,776 pairs were measured.", "n0005 · Memory bandwidth", "pages of their own certificates", "the axis does not begin at zero"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	t.Logf("the page of 1,024 nodes has %d KiB", len(html)>>10)
}

// enlarged is a cluster of many nodes that are like those of a small one.
func enlarged(p paper, nodes int) paper {
	out := paper{cluster: p.cluster, more: p.more}
	out.cluster.Nodes, out.cluster.Findings = nil, nil
	name := func(i int) string { return fmt.Sprintf("n%04d", i+1) }
	for i := range nodes {
		n, entry := p.nodes[i%len(p.nodes)], p.cluster.Nodes[i%len(p.nodes)]
		n.Node, n.ID = name(i), muster.CertificateID(fmt.Sprintf("pc-%010d", i+1))
		n.Use = slices.Clone(n.Use)
		n.Use[0].Node = n.Node
		n.Findings = nil
		entry.Node, entry.Certificate = n.Node, n.ID
		out.nodes, out.cluster.Nodes = append(out.nodes, n), append(out.cluster.Nodes, entry)
	}
	for _, f := range p.cluster.Findings {
		for i := range nodes {
			if f.Node == p.nodes[i%len(p.nodes)].Node {
				f := f
				f.Node = name(i)
				out.cluster.Findings = append(out.cluster.Findings, f)
			}
		}
	}
	pairs := *p.cluster.Pairs
	pairs.Possible, pairs.Figures = nodes*(nodes-1)/2, nil
	for _, f := range p.cluster.Pairs.Figures {
		if f.From != "n01" || f.To != "n02" {
			continue
		}
		for round := range 12 { // so many are measured of so large a cluster
			for i := range nodes / 2 {
				f.From, f.To = name(2*i), name((2*i+1+2*round*round*7)%nodes)
				pairs.Figures = append(pairs.Figures, f)
			}
		}
	}
	pairs.Measured = len(pairs.Figures) / 9
	out.cluster.Pairs = &pairs
	return out
}

// Whatever is signed, the page is well-formed and harmless.
func FuzzWrite(f *testing.F) {
	p := example(f, 2)
	for _, c := range append([]muster.Certificate{p.cluster}, p.nodes...) {
		c.Metrics = c.Metrics[:min(len(c.Metrics), 12)]
		body, err := json.Marshal(c)
		must(f, err)
		f.Add(body)
	}
	f.Add([]byte(`{"kind":"cluster","use":[{"node":"a","start":"2026-03-01T11:59:00Z","step_seconds":1e-300,"cpu":[1,2]}]}`))
	f.Add([]byte(`{"metrics":[{"name":"latency","size_bytes":9007199254740992,"median":1},{"name":"latency","size_bytes":1,"median":2}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var c muster.Certificate
		if json.Unmarshal(body, &c) != nil {
			return
		}
		p := paper{cluster: c, nodes: []muster.Certificate{c}}
		for i := range c.Nodes {
			n := c
			n.ID, n.Node = c.Nodes[i].Certificate, c.Nodes[i].Node
			if p.nodes = append(p.nodes, n); i > 20 {
				break
			}
		}
		harmless(t, write(t, p))
	})
}
