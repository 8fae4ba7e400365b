package wire

// MixQuery narrows a table of mixes of arithmetic.
type MixQuery struct {
	// Class of machines; "": all.
	Class string
}

// MixTable is what one core reaches in mixes of arithmetic, by processor model.
type MixTable struct {
	Models []MixModel `json:"models"`
}

// MixModel is one model of processor.
type MixModel struct {
	Processor string `json:"processor"`
	// Machines were measured, the newest certificate of each; Certified counts those
	// whose hardware nobody else used then.
	Machines  int `json:"machines"`
	Certified int `json:"certified"`
	// Double and Single are the theoretical peaks of one core in flop/s, with 64 and 32
	// bits, and Text is the formula of Double. They are left out where the clock or what a
	// core does in a cycle is not known.
	Double float64     `json:"peak_double,omitempty"`
	Single float64     `json:"peak_single,omitempty"`
	Text   string      `json:"peak_text,omitempty"`
	Mixes  []MixFigure `json:"mixes"`
}

// MixFigure is one mix at one level.
type MixFigure struct {
	// Mix is 1 to 4, Precision double or float, Level how it was compiled: O0,
	// register, O2, O3, fast.
	Mix       int    `json:"mix"`
	Precision string `json:"precision"`
	Level     string `json:"level"`
	// Median is over the medians of the machines, Min and Max their extremes; flop/s,
	// without the time of the empty loop.
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	// OfPeak is the share of the peak of the same precision.
	OfPeak *float64 `json:"of_peak,omitempty"`
	// Loop is what one round of the empty loop took, in seconds.
	Loop float64 `json:"loop_seconds,omitempty"`
}
