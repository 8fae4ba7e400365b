package page

import (
	"strings"

	"github.com/muster-hpc/muster"
)

// virtual is what virtual machines cost, beside published figures.
func (v *experimentContent) virtual(r muster.ExperimentResult) {
	if len(r.Virtual) == 0 {
		return
	}
	one := experimentTable{Title: "Times as fast as the machine itself", Head: []string{"Program", "Untuned", "Tuned", "Published"}}
	text := func(x *muster.ExperimentRatio) string {
		if x == nil {
			return "not measured"
		}
		return ratioRow("", *x).text
	}
	for _, p := range r.Virtual {
		name := strings.TrimPrefix(cleanText(p.Program)+", "+factorWords(p.Factors), ", ")
		one.Rows = append(one.Rows, []string{strings.TrimSuffix(name, ", "), text(p.UntunedSpeed), text(p.TunedSpeed), cleanText(p.Published)})
		v.Emulated = v.Emulated || p.Emulated
	}
	v.Virtual = append(v.Virtual, one)
}
