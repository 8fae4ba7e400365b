package page

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
)

// figureKey distinguishes figures.
type figureKey struct {
	Name, Distance string
	Size           int64
	Threads        int
}

// figure is one metric on several nodes.
type figure struct {
	figureKey
	about
	Unit string
	Less bool
	Rows []figureRow // in the order of the nodes
}

type figureRow struct {
	Node string
	At   int // its number
	muster.Metric
}

// figuresOf sorts the metrics of nodes by what they are of.
func figuresOf(nodes []muster.Certificate) []figure {
	at := map[figureKey]int{}
	var list []figure
	for i, n := range nodes {
		for _, m := range n.Metrics {
			k := figureKey{m.Name, m.Distance, m.Size, m.Threads}
			f, ok := at[k]
			if !ok {
				f = len(list)
				at[k] = f
				list = append(list, figure{figureKey: k, about: aboutMetric(m.Name), Unit: m.Unit, Less: m.Less})
			}
			list[f].Rows = append(list[f].Rows, figureRow{cmp.Or(n.Node, n.ClusterName, "all"), i, m})
		}
	}
	slices.SortStableFunc(list, func(a, b figure) int {
		return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.figureKey.Name, b.figureKey.Name), cmp.Compare(a.Distance, b.Distance),
			cmp.Compare(a.Threads, b.Threads), cmp.Compare(a.Size, b.Size))
	})
	return list
}

// Label names a figure for people.
func (f figure) Label() string { return f.Title + f.details() }

func (f figure) details() string { return details(f.figureKey) }

func details(k figureKey) string {
	var parts []string
	if k.Threads > 0 {
		parts = append(parts, count(k.Threads, "thread", "threads"))
	}
	if k.Size > 0 {
		parts = append(parts, size(k.Size))
	}
	if k.Distance != "" {
		parts = append(parts, apart(k.Distance))
	}
	if len(parts) == 0 {
		return ""
	}
	return ", " + strings.Join(parts, ", ")
}

// apart is a distance in words.
func apart(distance string) string { return muster.Distance(distance).String() }

// grade is the gravest verdict on it.
func (f figure) grade() muster.Grade {
	var list []muster.Grade
	for _, r := range f.Rows {
		list = append(list, r.Verdict)
	}
	return muster.Overall(list...)
}

// worth orders two rows: whose figure is worse comes first.
func (f figure) worse(a, b figureRow) int {
	if f.Less {
		return cmp.Compare(b.Median, a.Median)
	}
	return cmp.Compare(a.Median, b.Median)
}

// summary says in words what the bars show.
func (f figure) summary() string {
	if len(f.Rows) == 0 {
		return ""
	}
	if len(f.Rows) == 1 {
		r := f.Rows[0]
		text := r.Node + " " + human(r.Median, f.Unit)
		if r.Reference != nil {
			text += ", expected " + human(r.Reference.Value, f.Unit)
		}
		return text + "; " + gradeText(r.Verdict) + "."
	}
	sorted := slices.SortedStableFunc(slices.Values(f.Rows), f.worse)
	worst, best := sorted[0], sorted[len(sorted)-1]
	text := fmt.Sprintf("the best is %s with %s, the worst %s with %s.", best.Node, human(best.Median, f.Unit), worst.Node, human(worst.Median, f.Unit))
	var low, unstable []string
	for _, r := range f.Rows {
		switch r.Verdict {
		case muster.GradeLow:
			low = append(low, r.Node)
		case muster.GradeUnstable:
			unstable = append(unstable, r.Node)
		}
	}
	if len(low) > 0 {
		text += " Slower than it should be: " + folded(low) + "."
	}
	if len(unstable) > 0 {
		text += " Varies too much to say: " + folded(unstable) + "."
	}
	return text
}

// fullest picks from figures of one name that with most threads and the largest
// size that most nodes have.
func fullest(list []figure, name string) (figure, bool) {
	best, found := figure{}, false
	for _, f := range list {
		if f.figureKey.Name != name {
			continue
		}
		if !found || cmp.Or(cmp.Compare(len(f.Rows), len(best.Rows)), cmp.Compare(f.Threads, best.Threads), cmp.Compare(f.Size, best.Size)) > 0 {
			best, found = f, true
		}
	}
	return best, found
}

// panels is how many figures are drawn with bars.
const panels = 10

// important are the figures that are drawn: those that most ask for, the indices of
// single cores, and then what is wrong and would not be seen otherwise.
func important(list []figure) []figure {
	var out []figure
	seen := map[string]bool{}
	take := func(f figure, ok bool) {
		if ok && len(f.Rows) > 0 && len(out) < panels {
			out = append(out, f)
			seen[family(f.figureKey.Name)] = true
		}
	}
	for _, name := range []string{"dgemm", "stream.triad", "latency", "noise.share"} {
		f, ok := fullest(list, name)
		take(f, ok)
	}
	for _, f := range []struct{ name, title string }{{"core.int", "One core, integers"}, {"core.mem", "One core, memory"}, {"core.fp", "One core, floating point"}} {
		i, ok := index(list, f.name, f.title)
		take(i, ok)
	}
	compiled, ok := fullest(list, "mix.O3")
	take(compiled, ok)
	for _, name := range []string{"disk.read", "disk.random.read"} {
		f, ok := fullest(list, name)
		take(f, ok)
	}
	for _, grade := range muster.Grades() {
		for _, f := range list {
			if !seen[family(f.figureKey.Name)] && f.grade() == grade {
				best, ok := fullest(list, f.figureKey.Name)
				take(best, ok)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b figure) int { return cmp.Compare(a.group, b.group) })
	return out
}

// family is what metrics that measure nearly the same have in common.
func family(metric string) string {
	parts := strings.SplitN(metric, ".", 3)
	if len(parts) > 1 && parts[0] == "core" {
		return parts[0] + "." + parts[1]
	}
	return parts[0]
}

// finite leaves out what cannot be drawn.
func finite(list ...float64) []float64 {
	return slices.DeleteFunc(slices.Clone(list), func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
}
