package muster

// ExperimentResult is what an experiment shows so far.
type ExperimentResult struct {
	Rows []ExperimentRow `json:"rows"`
	// Varies are the factors that differ between cells, in order.
	Varies []string `json:"varies"`
	// Launches counts those that ended; Failed and Discarded are among them.
	Launches  int `json:"launches"`
	Failed    int `json:"failed"`
	Discarded int `json:"discarded"`
	// Planned is the largest number of launches that can be.
	Planned int `json:"planned"`
}

// ExperimentRow is what the launches of one cell show together.
type ExperimentRow struct {
	Cell    int               `json:"cell"`
	Factors map[string]string `json:"factors"`
	// Kept are the launches that count, All those that passed whether they count or not.
	Kept ExperimentFigure `json:"kept"`
	All  ExperimentFigure `json:"all"`
	// Name and Unit are of the figure, Better is which of two is better.
	Name   string `json:"name,omitempty"`
	Unit   string `json:"unit,omitempty"`
	Better Better `json:"better,omitempty"`
	Failed int    `json:"failed"`
	// GivenUp is why the cell is not launched any more.
	GivenUp string `json:"given_up,omitempty"`
	// Problem is that of the last launch that failed.
	Problem string `json:"problem,omitempty"`

	// Relative is how many times as fast it is as the slowest of its group: the same program,
	// class, arguments and ranks. Nil: it has no figure.
	Relative *ExperimentRatio `json:"relative,omitempty"`
	// Speedup is against the fewest ranks of what is otherwise the same, and Efficiency is
	// that for each rank.
	Speedup    *ExperimentRatio `json:"speedup,omitempty"`
	Efficiency float64          `json:"efficiency,omitempty"`
	// Ranks and Nodes are those of its launches.
	Ranks int `json:"ranks,omitempty"`
	Nodes int `json:"nodes,omitempty"`
	// User, System and Waiting are shares of the time of its cores; they are 1 together.
	User    *float64 `json:"user,omitempty"`
	System  *float64 `json:"system,omitempty"`
	Waiting *float64 `json:"waiting,omitempty"`
}

// ExperimentFigure is a median over launches.
type ExperimentFigure struct {
	N       int     `json:"n"`
	Median  float64 `json:"median"`
	Lowest  float64 `json:"lowest"`
	Highest float64 `json:"highest"`
	// Interval holds the true median. Nil: there are too few launches for one.
	Interval *ExperimentInterval `json:"interval,omitempty"`
}

// ExperimentInterval holds the true value with a chance of at least Level.
type ExperimentInterval struct {
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
	Level float64 `json:"level"`
}

// ExperimentRatio is one speed over another. Its interval, if there are enough launches, is
// that of the ratio.
type ExperimentRatio struct {
	Value    float64             `json:"value"`
	Interval *ExperimentInterval `json:"interval,omitempty"`
}
