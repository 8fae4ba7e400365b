package analysis

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
)

// Peak is how many operations on doubles a machine can do in a second at most, when
// so many threads work: what theory allows, and hardly a program reaches. It is nil
// where the clock, the cores or what a core does in a cycle are not known. The text
// is the formula with its numbers.
//
// Cores x clock x operations in a cycle, as in the lists of the fastest computers.
// The clock is the nominal one: where a processor may run faster a figure can lie
// above its peak.
func Peak(c muster.TestEnvironment, threads int) *muster.Reference {
	return peak(c, threads, 1, "double")
}

// PeakSingle is that of numbers of 32 bits: a vector of all these processors holds
// twice as many of them.
func PeakSingle(c muster.TestEnvironment, threads int) *muster.Reference {
	return peak(c, threads, 2, "single")
}

func peak(c muster.TestEnvironment, threads, wider int, precision string) *muster.Reference {
	if c.Clock == nil || c.Clock.Base <= 0 || c.Cores < 1 {
		return nil
	}
	flops, why := cycle(c.Processor, c.Flags)
	if flops == 0 {
		return nil
	}
	flops *= wider
	cores := c.Cores
	if threads > 0 {
		cores = min(cores, threads)
	}
	unit := "cores"
	if cores == 1 {
		unit = "core"
	}
	text := fmt.Sprintf("%d %s x %.2f GHz x %d flop per cycle (%s) in %s precision", cores, unit, float64(c.Clock.Base)/1e9, flops, why, precision)
	if c.Clock.Boost != nil && *c.Clock.Boost || c.Clock.Max > c.Clock.Base {
		text += "; it may run faster than this nominal clock"
	}
	return &muster.Reference{Value: float64(cores) * float64(c.Clock.Base) * float64(flops), Source: muster.SourcePeak, Text: text}
}

// Models whose units for wide vectors are not two full ones. Intel lists them as
// "# of AVX-512 FMA units", AMD describes them in its optimization guides.
var (
	oneWide   = regexp.MustCompile(`Xeon\(R\) (Bronze|Silver) [34][12]\d\d|Xeon\(R\) Gold 5[12]\d\d`)
	oneWide2  = regexp.MustCompile(`Xeon\(R\) Gold 5[12]22`) // these have both
	client    = regexp.MustCompile(`Core\(TM\) i[3579]-(10\d\dG|11\d\d)`)
	halfWide  = regexp.MustCompile(`EPYC [89][0-9A-Z]{2}4|Ryzen.* [78]\d{3}`)
	fullWide  = regexp.MustCompile(`EPYC 9[0-9A-Z]{2}5|Ryzen.* 9\d{3}X`)
	firstZen  = regexp.MustCompile(`EPYC 7[0-9A-Z]{2}1|Ryzen.* [12]\d{3}`)
	twoServer = regexp.MustCompile(`Xeon\(R\) (Gold 6|Platinum|Gold 5[3-9]|Silver 4[3-9]|w[579]-|W-[23])`)
)

// cycle is how many operations on doubles a core does in one cycle: two for each
// multiply-add, times the doubles in a vector, times the units that work at once.
// 0 where nothing tells.
func cycle(model string, flags []string) (flops int, why string) {
	has := func(f string) bool { return slices.Contains(flags, f) }
	switch {
	case has("avx512f") && oneWide.MatchString(model) && !oneWide2.MatchString(model):
		return 16, "AVX-512, one FMA unit in this model"
	case has("avx512f") && client.MatchString(model):
		return 16, "AVX-512, one FMA unit in this model"
	case has("avx512f") && halfWide.MatchString(model):
		return 16, "AVX-512, in two halves on this model"
	case has("avx512f") && (twoServer.MatchString(model) || fullWide.MatchString(model)):
		return 32, "AVX-512, two FMA units"
	case has("avx512f"):
		return 32, "AVX-512, two FMA units assumed"
	case has("avx2") && has("fma") && firstZen.MatchString(model):
		return 8, "AVX2 and FMA, in two halves on this model"
	case has("avx2") && has("fma"):
		return 16, "AVX2 and FMA, two units"
	case has("fma4"):
		return 0, "" // units are shared by two cores
	case has("avx"):
		return 8, "AVX, a multiplication and an addition"
	case has("sse2"):
		return 4, "SSE2, a multiplication and an addition"
	case has("sve"):
		return 0, "" // nothing tells how wide its vectors are
	case has("asimd"):
		return 8, "NEON with FMA, two units assumed"
	}
	return 0, ""
}

// withPeak adds what theory allows to the figures that it is known for.
func withPeak(j *Judged, c muster.TestEnvironment) {
	var p *muster.Reference
	switch name := j.Metric.Name; {
	case name == "dgemm":
		p = Peak(c, j.Metric.Threads)
	case j.Metric.Unit == "flop/s" && strings.HasPrefix(name, "arith."):
		if p = Peak(c, j.Metric.Threads); strings.Contains(name, ".float.") {
			p = PeakSingle(c, j.Metric.Threads)
		}
	}
	if p == nil {
		return
	}
	if j.Metric.Reference == nil { // shown, and no reason for a verdict
		j.Metric.Reference = p
		return
	}
	j.Metric.Others = append(j.Metric.Others, *p)
}
