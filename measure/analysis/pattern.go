package analysis

import (
	"math"
	"strings"

	"github.com/muster-hpc/muster/internal/stat"
)

// pattern is what the figures of one node lack, by what they depend on: shares of
// the speed; NaN where there was nothing to compare with.
type pattern struct {
	dgemm   float64
	whole   float64 // core.int: whole numbers
	float   float64 // core.fp and the mixes
	stream  float64
	chase   float64 // latency of the largest memory
	quantum float64 // fixed work without disturbances: nothing but the clock
	// lost is the share of time that disturbances took, and longest how long the
	// longest took in seconds; beside what is normal.
	lost, lostNormal       float64
	longest, longestNormal float64
}

func patternOf(node int, judged []Judged) pattern {
	group := map[string][]float64{}
	p := pattern{lost: math.NaN(), lostNormal: math.NaN(), longest: math.NaN(), longestNormal: math.NaN()}
	largest := int64(0)
	for _, j := range judged {
		if j.Node != node || math.IsNaN(j.Deficit) || j.Metric.Reference == nil {
			continue
		}
		switch m := j.Metric; {
		case m.Name == "dgemm":
			group["dgemm"] = append(group["dgemm"], j.Deficit)
		case strings.HasPrefix(m.Name, "core.int."):
			group["whole"] = append(group["whole"], j.Deficit)
		case strings.HasPrefix(m.Name, "core.fp."), strings.HasPrefix(m.Name, "mix."):
			group["float"] = append(group["float"], j.Deficit)
		case strings.HasPrefix(m.Name, "stream."):
			group["stream"] = append(group["stream"], j.Deficit)
		case m.Name == "latency":
			if m.Size > largest {
				largest, group["chase"] = m.Size, nil
			}
			if m.Size == largest {
				group["chase"] = append(group["chase"], j.Deficit)
			}
		case m.Name == "noise.median":
			group["quantum"] = append(group["quantum"], j.Deficit)
		case m.Name == "noise.share":
			p.lost, p.lostNormal = m.Median, m.Reference.Value
		case m.Name == "noise.max":
			p.longest, p.longestNormal = m.Median, m.Reference.Value
		}
	}
	p.dgemm, p.whole, p.float = stat.Median(group["dgemm"]), stat.Median(group["whole"]), stat.Median(group["float"])
	p.stream, p.chase, p.quantum = stat.Median(group["stream"]), stat.Median(group["chase"]), stat.Median(group["quantum"])
	return p
}

// computing is what single cores lack where they compute in their caches; NaN if
// that was not measured.
func (p pattern) computing() float64 { return highest(p.whole, p.float) }

// disturbed reports whether clearly more time is lost to disturbances than normal.
func (p pattern) disturbed() bool {
	return p.lost >= p.lostNormal+0.03 && p.lost >= 1.5*p.lostNormal
}

// contended is the share of the time that others had of the processors, as far as
// the figures tell.
func (p pattern) contended() float64 {
	if v := p.lost - p.lostNormal; v > 0 {
		return v
	}
	return 0
}

// highest is the largest of those that are known; NaN if none is.
func highest(list ...float64) float64 {
	out := math.NaN()
	for _, v := range list {
		if math.IsNaN(out) || v > out {
			out = v
		}
	}
	return out
}

// wires is what large and small messages between nodes lack, in the same way.
type wires struct{ bandwidth, latency float64 }

// largeMessage is where the time of a message is that of its bytes.
const largeMessage = 64 << 10

// wiresOf looks at a node with all others, or at a pair.
func wiresOf(fabrics []FabricJudged, a, b int) wires {
	var large, small []float64
	add := func(j Judged) {
		switch m := j.Metric; {
		case math.IsNaN(j.Deficit):
		case (m.Name == "pair.bandwidth" || m.Name == "pair.both") && m.Size >= largeMessage:
			large = append(large, j.Deficit)
		case m.Name == "pair.latency":
			small = append(small, j.Deficit)
		}
	}
	for _, f := range fabrics {
		if b < 0 {
			for _, j := range f.Nodes {
				if j.Node == a {
					add(j)
				}
			}
			continue
		}
		for _, l := range f.Links {
			if l.A == min(a, b) && l.B == max(a, b) {
				add(l.Judged)
			}
		}
	}
	return wires{stat.Median(large), stat.Median(small)}
}
