package page

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
)

//go:embed page.html page.css experiment.html
var files embed.FS

// More is what a page says beside what was signed.
type More struct {
	// Digest is of what was signed, and Key the fingerprint of the key that signed.
	Digest muster.Digest
	Key    string
	// Verified is the time as of which signatures were found to be genuine and in
	// force. Where it is zero, the page says that nobody looked.
	Verified time.Time
}

// Write writes the page of a certificate: of a cluster, with the certificates of its
// nodes in any order, or of one node, without others. It is one HTML file that needs
// nothing else. An error is one of w.
func Write(w io.Writer, c muster.Certificate, nodes []muster.Certificate, more More) error {
	css, err := files.ReadFile("page.css")
	if err != nil {
		return err
	}
	t, err := template.New("page.html").Funcs(template.FuncMap{
		"time": when, "percent": percent, "class": gradeClass, "words": gradeText, "sign": gradeSign,
	}).ParseFS(files, "page.html")
	if err != nil {
		return err
	}
	v := view(clean(c), clean(nodes), clean(more))
	// The style is ours and has a hash, so that the browser takes no other.
	v.Style = template.CSS(css)
	sum := sha256.Sum256(css)
	v.Policy = "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'"
	var out bytes.Buffer
	if err := t.Execute(&out, v); err != nil {
		return err
	}
	_, err = w.Write(out.Bytes())
	return err
}

// content is all that a page says.
type content struct {
	Style  template.CSS
	Policy string

	C                 muster.Certificate
	More              More
	OfCluster         bool // it is of a cluster
	Name              string
	Class, Sign       string // of the verdict
	Headline, Summary string
	Facts             []fact
	Findings, Others  []finding
	NoneWorse         bool // whatever was found, it is of no figure
	Limits            []limit
	Uncompared        []string
	Bars              []picture
	Dots              bool // they have dots for bars
	Maps, Curves      []picture
	Ranges            []picture // what was measured over a range
	Sweeps            []sweepTable
	Memory            []picture
	Use               []picture
	Machines          []picture
	Whole             table
	PairsNote         string
	Tiers             table
	Compared          []nodesRow
	Tables            []nodeTable
	Tabled            int // nodes without a table of their own
	Conditions        []condition
	Meanings          []meaning
}

// nodeTable has all figures of one node.
type nodeTable struct {
	Node string
	Rows table
}

func view(c muster.Certificate, nodes []muster.Certificate, more More) content {
	v := content{C: c, More: more, OfCluster: c.Kind == muster.CertifiesCluster}
	names := []string{c.Node}
	if v.OfCluster {
		nodes, names = inOrder(c, nodes)
	} else {
		nodes = []muster.Certificate{c}
	}
	v.Name = cmp.Or(c.ClusterName, string(c.Cluster))
	if !v.OfCluster {
		v.Name = c.Node + " of " + v.Name
	}
	v.Class, v.Sign = gradeClass(c.Verdict), gradeSign(c.Verdict)
	v.head(nodes)
	list := figuresOf(nodes)
	v.Findings = findings(c, nodes)
	v.NoneWorse = !slices.ContainsFunc(v.Findings, func(f finding) bool { return f.Class != differs })
	if len(v.Findings) > mostFindings {
		v.Findings, v.Others = v.Findings[:mostFindings], v.Findings[mostFindings:]
	}
	for _, f := range important(list) {
		v.Bars = append(v.Bars, bars(f))
		v.Dots = v.Dots || len(f.Rows) > mostRows
	}
	v.Limits, v.Uncompared = limits(important(list))
	v.between(names)
	if p, ok := memoryLatency(list, nodes); ok {
		v.Memory = append(v.Memory, p)
	}
	if p, ok := noise(list, nodes); ok {
		v.Memory = append(v.Memory, p)
	}
	if p, ok := use(useOf(c, nodes)); ok {
		v.Use = append(v.Use, p)
	}
	v.Machines = machines(nodes)
	together := []figure{}
	if v.OfCluster {
		together = figuresOf([]muster.Certificate{c})
		v.Whole = tableOf(together, 0)
		v.Compared = compared(list)
	}
	if len(nodes) <= mostTables {
		for i, n := range nodes {
			v.Tables = append(v.Tables, nodeTable{n.Node, tableOf(list, i)})
		}
	} else {
		v.Tabled = len(nodes)
	}
	v.Conditions = conditions(c, nodes)
	v.Ranges, v.Sweeps = sweepCharts(c.Sweeps), sweepTables(c.Sweeps)
	v.Meanings = meanings(list, pairMetrics(c), together, sweepFigures(c.Sweeps))
	return v
}

// inOrder puts the certificates of nodes in the order of the manifest, and names
// those without one, too.
func inOrder(c muster.Certificate, nodes []muster.Certificate) ([]muster.Certificate, []string) {
	of := map[muster.CertificateID]muster.Certificate{}
	for _, n := range nodes {
		of[n.ID] = n
	}
	var list []muster.Certificate
	var names []string
	for _, n := range c.Nodes {
		names = append(names, n.Node)
		if one, ok := of[n.Certificate]; ok {
			list = append(list, one)
		}
	}
	return list, names
}

// between draws what was measured between nodes.
func (v *content) between(names []string) {
	c := v.C
	if c.Pairs == nil {
		return
	}
	if c.Pairs.Possible > 0 && c.Pairs.Measured >= c.Pairs.Possible {
		v.PairsNote = "Every pair was measured."
	} else if c.Pairs.Possible > 0 {
		v.PairsNote = fmt.Sprintf("%s of %s were measured.", whole(c.Pairs.Measured), count(c.Pairs.Possible, "pair", "pairs"))
	}
	sets := pairFigures(c, names)
	for _, m := range []struct {
		metric, title string
		smallest      bool
	}{{"pair.latency", "Latency", true}, {"pair.bandwidth", "Bandwidth", false}} {
		var keys []figureKey
		for k := range sets {
			if k.Name == m.metric && len(sets[k]) > 0 {
				keys = append(keys, k)
			}
		}
		if len(keys) == 0 {
			continue
		}
		by := func(a, b figureKey) int { return cmp.Compare(a.Size, b.Size) }
		k := slices.MaxFunc(keys, by)
		if m.smallest {
			k = slices.MinFunc(keys, by)
		}
		a := aboutMetric(m.metric)
		unit := unitOf(m.metric)
		v.Maps = append(v.Maps, heat(m.title+" between nodes"+prefix(", ", strings.TrimPrefix(details(k), ", ")), a, unit, unit == "s", names, sets[k]))
	}
	tiers := pairMetrics(c)
	v.Tiers = tableOf(tiers, 0)
	v.Curves = messageCharts(sets, tiers)
}

// pairMetrics are the figures of pairs by distance.
func pairMetrics(c muster.Certificate) []figure {
	if c.Pairs == nil {
		return nil
	}
	return figuresOf([]muster.Certificate{{Node: "pairs", Metrics: c.Pairs.Metrics}})
}

// useOf collects how busy nodes were, each once.
func useOf(c muster.Certificate, nodes []muster.Certificate) []muster.UseSeries {
	var out []muster.UseSeries
	seen := map[string]bool{}
	for _, n := range append([]muster.Certificate{c}, nodes...) {
		for _, u := range n.Use {
			if !seen[u.Node] {
				seen[u.Node] = true
				out = append(out, u)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b muster.UseSeries) int { return cmp.Compare(a.Node, b.Node) })
	return out
}
