package cli

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/muster-hpc/muster"
)

// useWidth is how many characters a curve has, and mostUseLines how many nodes are drawn.
const (
	useWidth     = 60
	mostUseLines = 16
)

// writeUse draws how busy processors were while something was measured: a row for user
// mode, the kernel and waiting, on the scale of the busiest second.
func writeUse(w io.Writer, list []muster.UseSeries, ascii bool) {
	if len(list) == 0 {
		return
	}
	fmt.Fprint(w, "\nProcessors meanwhile, in cores\n")
	t := newTable("NODE", "TIME", "OVER TIME", "MEAN", "MAX")
	for i, u := range list {
		if i == mostUseLines {
			break
		}
		top := 0.0
		for _, v := range u.CPU {
			top = max(top, v)
		}
		node := clean(u.Node)
		rows := []struct {
			name   string
			values []float64
		}{{"user", u.User}, {"system", u.System}, {"wait", u.Wait}}
		if len(u.User) == 0 { // of a server that did not keep them apart
			rows = rows[:1]
			rows[0].name, rows[0].values = "busy", u.CPU
		}
		for _, r := range rows {
			if len(r.values) == 0 {
				continue
			}
			top := max(top, slices.Max(r.values))
			points := make([]*float64, len(r.values))
			sum := 0.0
			for k := range r.values {
				points[k] = &r.values[k]
				sum += r.values[k]
			}
			t.rows = append(t.rows, []string{node, r.name, spark(points, top, useWidth, ascii), digits4(sum / float64(len(points))), digits4(slices.Max(r.values))})
			node = ""
		}
	}
	t.write(w)
	u := list[0]
	fmt.Fprintf(w, "From %s on, for %s.\n", stamp(u.Start), age(time.Duration(float64(len(u.CPU))*u.Step*float64(time.Second))))
	if n := len(list) - mostUseLines; n > 0 {
		fmt.Fprintf(w, "%d more nodes: see -o json.\n", n)
	}
}
