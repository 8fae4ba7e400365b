package compare

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/stat"
	"github.com/muster-hpc/muster/wire"
)

// mix is one mix of arithmetic as it was compiled.
type mix struct {
	number           int // 0: the empty loop
	precision, level string
}

// mixOf reads the name of a metric, arith.1.double.O0; false of all others.
func mixOf(name string) (mix, bool) {
	w := strings.Split(name, ".")
	if len(w) != 4 || w[0] != "arith" {
		return mix{}, false
	}
	m := mix{precision: w[2], level: w[3]}
	if w[1] == "loop" {
		return m, true
	}
	n, err := strconv.Atoi(w[1])
	m.number = n
	return m, err == nil && n > 0
}

// Mixes is what one core reaches in mixes of arithmetic, by processor model, of the
// certificates of nodes that have them. A certificate of another kind is left out.
func Mixes(certs []muster.Certificate) wire.MixTable {
	type model struct {
		wire.MixModel
		values map[mix][]float64
	}
	models := map[string]*model{}
	for _, c := range certs {
		if c.Kind != muster.CertifiesNode || !slices.ContainsFunc(c.Metrics, func(m muster.Metric) bool { _, ok := mixOf(m.Name); return ok }) {
			continue
		}
		o := models[c.Conditions.Processor]
		if o == nil {
			o = &model{MixModel: wire.MixModel{Processor: c.Conditions.Processor}, values: map[mix][]float64{}}
			models[c.Conditions.Processor] = o
		}
		o.Machines++
		if c.Certified {
			o.Certified++
		}
		for _, m := range c.Metrics {
			k, ok := mixOf(m.Name)
			if !ok {
				continue
			}
			o.values[k] = append(o.values[k], m.Median)
			if r := m.Reference; k.number > 0 && r != nil && r.Source == muster.SourcePeak {
				switch k.precision {
				case "double":
					if r.Value > o.Double {
						o.Double, o.Text = r.Value, r.Text
					}
				case "float":
					o.Single = max(o.Single, r.Value)
				}
			}
		}
	}
	out := wire.MixTable{Models: []wire.MixModel{}}
	for _, o := range models {
		o.Mixes = []wire.MixFigure{}
		for k, list := range o.values {
			if k.number == 0 {
				continue
			}
			f := wire.MixFigure{Mix: k.number, Precision: k.precision, Level: k.level, Median: stat.Median(list), Min: slices.Min(list), Max: slices.Max(list)}
			if loop := o.values[mix{precision: k.precision, level: k.level}]; len(loop) > 0 {
				f.Loop = stat.Median(loop)
			}
			if peak := map[string]float64{"double": o.Double, "float": o.Single}[k.precision]; peak > 0 {
				share := f.Median / peak
				f.OfPeak = &share
			}
			o.Mixes = append(o.Mixes, f)
		}
		slices.SortFunc(o.Mixes, func(a, b wire.MixFigure) int {
			return cmp.Or(cmp.Compare(a.Precision, b.Precision), cmp.Compare(a.Mix, b.Mix), cmp.Compare(levelOrder(a.Level), levelOrder(b.Level)), cmp.Compare(a.Level, b.Level))
		})
		out.Models = append(out.Models, o.MixModel)
	}
	slices.SortFunc(out.Models, func(a, b wire.MixModel) int { return cmp.Compare(a.Processor, b.Processor) })
	return out
}

// levelOrder is from the slowest to the fastest; one that is not known comes last.
func levelOrder(level string) int {
	known := []string{"O0", "register", "O2", "O3", "fast"}
	if i := slices.Index(known, level); i >= 0 {
		return i
	}
	return len(known)
}
