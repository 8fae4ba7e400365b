package tuning

import (
	"fmt"
	"math"

	"github.com/muster-hpc/muster/internal/stat"
)

// Verdict is whether a setting is better than the default.
type Verdict struct {
	// Ratio is how many times as fast it is, with its interval. Zero: there are too few launches.
	Ratio  float64 `json:"ratio,omitempty"`
	Low    float64 `json:"low,omitempty"`
	High   float64 `json:"high,omitempty"`
	Level  float64 `json:"level,omitempty"`
	Better bool    `json:"better"`
	// Text is the verdict in words.
	Text string `json:"text"`
}

// level is the chance that the interval holds.
const level = 0.95

// Judge compares speeds of launches that were made for it alone: those of a search chose the setting, and so
// look better than it is.
func Judge(usual, tuned []float64) Verdict {
	shift, err := stat.HodgesLehmannRatio(usual, tuned, level)
	if err != nil || math.IsInf(shift.High, 0) {
		return Verdict{Text: fmt.Sprintf("too few launches count: %d of the default, %d of the best setting", len(usual), len(tuned))}
	}
	v := Verdict{Ratio: shift.Value, Low: shift.Low, High: shift.High, Level: shift.Level, Better: shift.Low > 1}
	v.Text = fmt.Sprintf("%.3g times as fast as the default (%.3g to %.3g)", v.Ratio, v.Low, v.High)
	switch {
	case v.High < 1:
		v.Text += ": it is slower"
	case !v.Better:
		v.Text += ": no difference is shown"
	}
	return v
}
