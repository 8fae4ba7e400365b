package cli

import (
	"fmt"
	"io"
	"slices"

	"github.com/muster-hpc/muster"
)

// writeSweeps writes what was measured over a range. Of sizes of messages only some are
// shown: the page of a certificate draws all of them.
func writeSweeps(w io.Writer, list []muster.Sweep) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintf(w, "\nOver a range, not judged; 'muster certificate page' draws every size\n")
	t := newTable("METRIC", "AT", "MEDIAN", "MEAN", "MIN", "MAX")
	for _, s := range list {
		for i, p := range s.Points {
			if s.Over == "size" && i > 0 && i < len(s.Points)-1 && !slices.Contains([]float64{8, 1024, 65536, 2000000}, p.At) {
				continue
			}
			t.row(sweepName(s), sweepPlace(s.Over, p.At), amount(p.Median, s.Unit), amount(p.Mean, s.Unit), amount(p.Min, s.Unit), amount(p.Max, s.Unit))
		}
	}
	t.write(w)
}

// sweepName tells figures of one name apart.
func sweepName(s muster.Sweep) string {
	text := clean(s.Metric)
	if s.Size > 0 {
		text += " " + sweepSize(s.Size)
	}
	if s.Ranks > 0 {
		text += fmt.Sprintf(" %d/node", s.Ranks)
	}
	if s.Distance != "" {
		text += " (" + clean(s.Distance) + ")"
	}
	return text
}

func sweepPlace(over string, at float64) string {
	switch over {
	case "size":
		return sweepSize(int64(at))
	case "offered":
		return amount(at, "B/s")
	case "streams":
		return fmt.Sprintf("%g at once", at)
	}
	return fmt.Sprintf("%g %s", at, clean(over))
}

// sweepSize writes a size exactly: 2,000,000 B are not 2 MiB.
func sweepSize(n int64) string {
	if n&(n-1) != 0 {
		return fmt.Sprintf("%d B", n)
	}
	return size(n)
}
