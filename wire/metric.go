package wire

// Metric is one family of figures for a monitoring system: what they mean, and
// one value for each set of labels.
type Metric struct {
	Name    string // muster_...
	Help    string
	Counter bool // it only grows while the server runs; else it is what it is
	Labels  []string
	Values  []MetricValue
}

// MetricValue is a value with its labels, as many as the family has names.
type MetricValue struct {
	Labels []string
	Value  float64
}
