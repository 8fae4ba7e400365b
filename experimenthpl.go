package muster

// ExperimentHPL is what the cells of HPL show together that differ in the order of the matrix, its
// blocks and the grid only. Of each order the fastest counts. Rates are flop/s.
type ExperimentHPL struct {
	// Factors are the others that vary.
	Factors map[string]string `json:"factors,omitempty"`
	Ranks   int               `json:"ranks"`
	Nodes   int               `json:"nodes"`
	// Cores are those that ranks and threads had.
	Cores int `json:"cores"`
	// Sizes are the orders that were measured, the smallest first.
	Sizes []ExperimentHPLSize `json:"sizes"`
	// Rmax is the largest rate, Interval that of its median, and Nmax the order at it.
	Rmax     float64             `json:"rmax_flop_per_second"`
	Interval *ExperimentInterval `json:"rmax_interval,omitempty"`
	Nmax     int                 `json:"nmax"`
	// Half is the order with half of Rmax.
	Half ExperimentHPLHalf `json:"half"`
	// PerCore is Rmax by core. Peak is what theory allows the cores, and OfPeak the share that
	// Rmax is of it. Nil: the processor's clock and units are not on record.
	PerCore float64    `json:"flop_per_second_per_core"`
	Peak    *Reference `json:"peak,omitempty"`
	OfPeak  *float64   `json:"of_peak,omitempty"`
	// Model is how the time grows with the order. Nil: NoModel is why there is none.
	Model   *ExperimentHPLModel `json:"model,omitempty"`
	NoModel string              `json:"no_model,omitempty"`
	// At is what the model expects of the order that was asked for.
	At *ExperimentHPLForecast `json:"at,omitempty"`
}

// ExperimentHPLSize is one order of the matrix.
type ExperimentHPLSize struct {
	N        int                 `json:"n"`
	Cell     int                 `json:"cell"`
	NB       int                 `json:"nb"`
	P        int                 `json:"p"`
	Q        int                 `json:"q"`
	Rate     float64             `json:"flop_per_second"`
	Interval *ExperimentInterval `json:"flop_per_second_interval,omitempty"`
}

// ExperimentHPLHalf is the order with half of Rmax, on a straight line between two that were
// measured.
type ExperimentHPLHalf struct {
	// N is 0 where it lies outside of what was measured: below Above.
	N     float64 `json:"n,omitempty"`
	Below int     `json:"below,omitempty"` // the next larger order that was measured
	Above int     `json:"above,omitempty"` // the next smaller one; 0: none
}

// ExperimentHPLModel is the time of HPL in seconds: Cube N^3 + Square N^2 + Linear N. None is
// below zero.
type ExperimentHPLModel struct {
	Cube   float64 `json:"cube"`
	Square float64 `json:"square"`
	Linear float64 `json:"linear"`
	// Sizes are how many it was fitted to, and Error is how far these lie from it: the standard
	// deviation, as a share.
	Sizes int     `json:"sizes"`
	Error float64 `json:"error"`
}

// ExperimentHPLForecast is what a model expects where nothing was measured. Its intervals hold
// one such measurement, as far as the model holds.
type ExperimentHPLForecast struct {
	N       int                 `json:"n,omitempty"`
	Nodes   int                 `json:"nodes,omitempty"`
	Rate    float64             `json:"flop_per_second,omitempty"`
	Rates   *ExperimentInterval `json:"flop_per_second_interval,omitempty"`
	Seconds float64             `json:"seconds,omitempty"`
	Times   *ExperimentInterval `json:"seconds_interval,omitempty"`
	// Refused is why nothing can be said.
	Refused string `json:"refused,omitempty"`
}

// ExperimentHPLNodes is how Rmax grows with nodes, where cells differ in ranks only, beside the
// order, its blocks and the grid.
type ExperimentHPLNodes struct {
	Factors map[string]string      `json:"factors,omitempty"`
	Points  []ExperimentHPLOfNodes `json:"points"`
	Serial  *float64               `json:"serial,omitempty"` // the share of the time of one node that does not shrink with nodes
	NoModel string                 `json:"no_model,omitempty"`
	At      *ExperimentHPLForecast `json:"at,omitempty"`
}

// ExperimentHPLOfNodes is Rmax of so many nodes.
type ExperimentHPLOfNodes struct {
	Nodes int     `json:"nodes"`
	Rmax  float64 `json:"rmax_flop_per_second"`
}
