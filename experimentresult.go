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
	// Traffic is whether programs that send much lose by being spread over nodes. HPL is what
	// its cells show together.
	Traffic []ExperimentTraffic `json:"traffic,omitempty"`
	HPL     []ExperimentHPL     `json:"hpl,omitempty"`
	// HPLNodes is how HPL grows with nodes, where more than one count was measured.
	HPLNodes []ExperimentHPLNodes `json:"hpl_nodes,omitempty"`
	// Virtual is what virtual machines cost, where machines and virtual machines were measured.
	Virtual []ExperimentVirtual `json:"virtual,omitempty"`
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
	// VM is how its nodes were set up, where they were virtual machines.
	VM *VMCondition `json:"vm,omitempty"`
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
	// SentBytes and SentPackets are what each of its nodes sent to the message network in a second,
	// on average. Nil: it was not counted in any launch.
	SentBytes   *float64 `json:"sent_bytes_per_second_per_node,omitempty"`
	SentPackets *float64 `json:"sent_packets_per_second_per_node,omitempty"`
}

// ExperimentTraffic is what programs have in common that ran dense and spread, under otherwise
// the same factors: do those that send most lose most?
type ExperimentTraffic struct {
	// Factors are the other ones that vary.
	Factors  map[string]string  `json:"factors,omitempty"`
	Programs []ExperimentSpread `json:"programs"`
	// Bytes and Packets are the rank correlations of the slowdown with what a node sent in a
	// second while spread. Nil: there are fewer than five programs, or all send alike.
	Bytes   *ExperimentRatio `json:"with_bytes,omitempty"`
	Packets *ExperimentRatio `json:"with_packets,omitempty"`
}

// ExperimentSpread is one program in two placements.
type ExperimentSpread struct {
	Program string `json:"program"`
	// Dense and Spread are its cells.
	Dense  int `json:"dense_cell"`
	Spread int `json:"spread_cell"`
	// Slowdown is how many times as fast it is dense.
	Slowdown    float64 `json:"slowdown"`
	SentBytes   float64 `json:"sent_bytes_per_second_per_node"`
	SentPackets float64 `json:"sent_packets_per_second_per_node"`
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
