package cli

import (
	"context"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/api/client"
	"github.com/muster-hpc/muster/internal/duration"
	"github.com/muster-hpc/muster/internal/plaintext"
	"github.com/muster-hpc/muster/wire"
	"github.com/spf13/cobra"
)

func (a *app) history() *cobra.Command {
	var q wire.HistoryQuery
	var ago string
	var ascii bool
	c := &cobra.Command{
		Use: "history CLUSTER|MACHINE|CLASS", Short: "Show measured performance over time", Args: exactly("CLUSTER"), ValidArgsFunction: a.completeMeasured(1),
		Long: `Shows each metric of a cluster, machine or class over all certificates you can see:
extremes, the interval in which the next value is expected, when its level changed and
what changed with it, and the smallest loss that the newest measurement would have
detected. Of HPL it names which figures of the network, memory, cores and other load
changed with it, the strongest first, and which did not. A name is looked up among clusters, machines and classes, in that order; use
cluster:NAME, machine:ID or class:NAME to be specific. For a deleted cluster, give its
ID.

OVER TIME ranges from the lowest to the highest median. NEXT is the 99 % prediction
interval of the next value; ! marks a newest value outside its interval. A change is
reported only after five more measurements. docs/users/certificate.md explains each number
and its limits.`,
		Example: `  muster history cfd
  muster history local-03 --metric stream --since 90d
  muster history cfd --metric hpl
  muster history class:epyc-16 -o json`,
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.checkOutput(); err != nil {
				return err
			}
			if ago != "" {
				d, err := duration.Parse(ago)
				if err != nil || d <= 0 {
					return muster.Errorf(muster.EInvalid, "--since cannot be %q", ago).Because(muster.ReasonBadValue).WithHint("write how far back: 24h, 90d")
				}
				q.Since = d
			}
			k, err := a.connect()
			if err != nil {
				return err
			}
			q.Of = args[0]
			h, err := k.History(c.Context(), q)
			if err != nil {
				return err
			}
			p := historyPage{width: a.env.width(a.env.Out), ascii: ascii || !a.utf8()}
			return a.print(h, func(w io.Writer) { p.write(w, h) })
		},
	}
	c.Flags().StringVar(&q.Metric, "metric", "", "only this metric, or all with this prefix before a dot: stream")
	c.Flags().StringVar(&ago, "since", "", "how far back: 24h, 90d (default: everything)")
	c.Flags().BoolVar(&ascii, "ascii", false, "draw with ASCII characters")
	_ = c.RegisterFlagCompletionFunc("since", cobra.NoFileCompletions)
	_ = c.RegisterFlagCompletionFunc("metric", cobra.NoFileCompletions)
	return c
}

// completeMeasured completes clusters, machines and classes, as the first most
// arguments (-1: all).
func (a *app) completeMeasured(most int) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if most >= 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return a.completion(c, func(ctx context.Context, k *client.Client) []string {
			clusters, _ := k.Clusters(ctx, client.ClusterFilter{})
			machines, _ := k.Machines(ctx, true)
			var names []string
			for _, c := range clusters {
				names = append(names, c.Name)
			}
			seen := map[string]bool{}
			for _, m := range machines {
				names = append(names, string(m.ID))
				if class := m.Facts.Class; class != "" && !seen[class] {
					seen[class] = true
					names = append(names, class)
				}
			}
			return names
		}, typed)
	}
}

// historyPage draws histories for people.
type historyPage struct {
	width int
	ascii bool
}

func (p historyPage) write(w io.Writer, h wire.History) {
	n := len(h.Measurements)
	if n == 0 {
		fmt.Fprintf(w, "%s %s: no certificates\n", h.Kind, clean(strings.TrimPrefix(h.Of, h.Kind+":")))
		writeHPLHistory(w, h.HPL)
		return
	}
	from, to := h.Measurements[0], h.Measurements[n-1]
	fmt.Fprintf(w, "%s %s: %s, %s to %s\n", h.Kind, clean(strings.TrimPrefix(h.Of, h.Kind+":")), plaintext.Count(n, "measurement"), stamp(from.At), stamp(to.At))
	if h.Older {
		fmt.Fprintln(w, "There are older ones, which are not shown.")
	}
	reports := 0
	for _, m := range h.Measurements {
		if !m.Certified {
			reports++
		}
	}
	if reports > 0 && reports < n {
		fmt.Fprintf(w, "%d of them are reports, not certified: they are drawn, and nothing follows from them.\n", reports)
	} else if reports > 0 {
		fmt.Fprintln(w, "All of them are reports, not certified: what others did meanwhile is in these figures.")
	}
	fmt.Fprintln(w)
	if len(h.Metrics) > 0 {
		p.metrics(w, h)
	}
	p.told(w, h)
	writeHPLHistory(w, h.HPL)
}

func (p historyPage) metrics(w io.Writer, h wire.History) {
	between := false
	for _, m := range h.Metrics {
		between = between || m.Between != nil
	}
	head := []string{"METRIC", "OVER TIME", "MIN", "MEDIAN", "MAX", "NEWEST", "NEXT", "SEES"}
	if between {
		head = append(head, "MACHINES", "DIFFER")
	}
	t := newTable(head...)
	for _, m := range h.Metrics {
		next, sees, newest := "-", "-", "-"
		if last := m.Points[len(m.Points)-1]; last.Measurement == len(h.Measurements)-1 {
			newest = amount(last.Median, m.Unit)
		}
		if m.Outside {
			newest += " !"
		}
		if m.Next != nil {
			next = amounts(m.Next.Low, m.Next.High, m.Unit)
		}
		if m.Detectable != nil {
			sees = fmt.Sprintf("%.1f %%", 100**m.Detectable)
		}
		cells := []string{clean(metricName(m.MetricKey)), p.line(h, m), amount(m.Min, m.Unit), amount(m.Median, m.Unit), amount(m.Max, m.Unit), newest, next, sees}
		if m.Between != nil {
			cells = append(cells, fmt.Sprint(m.Between.Machines), fmt.Sprintf("%.1f %%", 100*m.Between.Spread))
		}
		t.rows = append(t.rows, cells) // not by row: a gap at the end of a line is a gap
	}
	t.write(w)
}

// line draws the medians between the lowest and the highest of them. Where several
// share a character, the one counts that is furthest from the rest.
func (p historyPage) line(h wire.History, m wire.MetricHistory) string {
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range m.Points {
		low, high = min(low, v.Median), max(high, v.Median)
	}
	n := len(h.Measurements)
	width := min(n, max(16, min(40, p.width-90)))
	points := make([]*float64, width)
	for _, v := range m.Points {
		x, at := v.Median-low, v.Measurement*width/n
		if o := points[at]; o == nil || math.Abs(v.Median-m.Median) > math.Abs(*o+low-m.Median) {
			points[at] = &x
		}
	}
	return spark(points, high-low, width, p.ascii)
}

// told says in sentences what changed.
func (p historyPage) told(w io.Writer, h wire.History) {
	for _, m := range h.Metrics {
		for _, c := range m.Changes {
			fmt.Fprintf(w, "\n%s  %s went from %s to %s (%s)%s\n", stamp(c.At), clean(metricName(m.MetricKey)),
				amount(c.Before, m.Unit), amount(c.After, m.Unit), gain(c.After/c.Before), goodOrBad(m.Less, c.After > c.Before))
			if len(c.With) > 0 {
				fmt.Fprintf(w, "  with it: %s\n", clean(metricNames(c.With)))
			}
			for _, e := range c.Events {
				fmt.Fprintf(w, "  about then %s became %s, from %s\n", e.Condition, clean(e.To), clean(e.From))
			}
		}
	}
	newest := stamp(h.Measurements[len(h.Measurements)-1].At)
	for _, m := range h.Metrics {
		if !m.Outside || m.Expected == nil {
			continue
		}
		v := m.Points[len(m.Points)-1].Median
		fmt.Fprintf(w, "\n%s  %s is %s, and %s was expected%s\n", newest, clean(metricName(m.MetricKey)), amount(v, m.Unit),
			amounts(m.Expected.Low, m.Expected.High, m.Unit), goodOrBad(m.Less, v > m.Expected.High))
		if len(m.With) > 0 {
			fmt.Fprintf(w, "  with it: %s\n", clean(metricNames(m.With)))
		}
	}
	if len(h.Events) > 0 {
		fmt.Fprintln(w)
		t := newTable("SINCE", "CONDITION", "BEFORE", "AFTER")
		for _, e := range h.Events {
			after := e.To
			if e.Breaks {
				after += " (figures before are not compared)"
			}
			t.row(stamp(e.At), e.Condition, clip(e.From, 40), clip(after, 80))
		}
		t.write(w)
	}
}

func goodOrBad(less, up bool) string {
	if less != up {
		return ", which is better"
	}
	return ", which is worse"
}

// classes are those of machines.
func (a *app) classes(ctx context.Context, k *client.Client) []string {
	machines, _ := k.Machines(ctx, true)
	var names []string
	seen := map[string]bool{}
	for _, m := range machines {
		if class := m.Facts.Class; class != "" && !seen[class] {
			seen[class] = true
			names = append(names, class)
		}
	}
	return names
}
