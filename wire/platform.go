package wire

import "github.com/muster-hpc/muster"

// PlatformImport loads what the script for clusters that are not Muster's wrote.
type PlatformImport struct {
	Name    string `json:"name,omitempty" maxLength:"64" doc:"Left out: the name in the file"`
	Project string `json:"project,omitempty" maxLength:"64" doc:"Left out: the caller's only one"`
	Replace bool   `json:"replace,omitempty" doc:"Take the place of one of that name"`
	Data    []byte `json:"data" doc:"The file that ./measure wrote, in base64; gzipped or not"`
}

// Platform is a cluster that is not Muster's. Muster did not measure it.
type Platform struct {
	muster.Platform
	// Measured is false: a reader of JSON may not miss it.
	Measured bool          `json:"measured_by_muster"`
	Rows     []PlatformRow `json:"rows"`
}

// PlatformSummary is a platform in a list.
type PlatformSummary struct {
	Name      string `json:"name"`
	Project   string `json:"project"`
	Owner     string `json:"owner"`
	Began     string `json:"began" doc:"RFC 3339"`
	Nodes     int    `json:"nodes"`
	Processor string `json:"processor,omitempty"`
	Launches  int    `json:"launches"`
	Failed    int    `json:"failed"`
	Measured  bool   `json:"measured_by_muster"`
}

// PlatformList is every platform that the caller can see.
type PlatformList struct {
	Platforms []PlatformSummary `json:"platforms"`
	More
}

// PlatformSide is one of those that are compared.
type PlatformSide struct {
	Name     string `json:"name"`
	Measured bool   `json:"measured_by_muster"`
}

// PlatformComparison puts platforms and clusters next to each other.
type PlatformComparison struct {
	Sides []PlatformSide `json:"sides"`
	Rows  []PlatformRow  `json:"rows"`
}

// PlatformRow is one program, in one class, on so many ranks.
type PlatformRow struct {
	Program string `json:"program"`
	Class   string `json:"class"`
	Ranks   int    `json:"ranks"`
	// Figures are in the order of the sides; null where one did not run it.
	Figures []*PlatformFigure `json:"figures"`
}

// PlatformFigure is what the launches of one side show, in Mop/s.
type PlatformFigure struct {
	Launches int `json:"launches"`         // that count
	Failed   int `json:"failed,omitempty"` // ended badly, or found their result wrong
	// Median, and its interval at 95 %. No interval: fewer than 6 launches.
	Median float64 `json:"median"`
	Low    float64 `json:"low,omitempty"`
	High   float64 `json:"high,omitempty"`
	// Deviation is the standard deviation of launches by their mean. Zero below 2 launches.
	Deviation float64 `json:"deviation,omitempty"`
	// Ratio is how many times as fast as the slowest side it is (Hodges and Lehmann), with its
	// interval. Zero where only one side is shown.
	Ratio     float64 `json:"ratio,omitempty"`
	RatioLow  float64 `json:"ratio_low,omitempty"`
	RatioHigh float64 `json:"ratio_high,omitempty"`
	Slowest   bool    `json:"slowest,omitempty"`
}
