package series

import "math"

// cell is what is known about one entry in a span of time.
type cell struct {
	gauge, rate float64 // seconds covered: of what is measured, of what is counted
	sum         [columns]float64
	max         [columns]float64
}

func (c *cell) empty() bool { return c.gauge == 0 && c.rate == 0 }

// weight is how many seconds of a column are known.
func (c *cell) weight(column int) float64 {
	if isRate(column) {
		return c.rate
	}
	return c.gauge
}

// mean of a column; false when nothing is known.
func (c *cell) mean(column int) (float64, bool) {
	w := c.weight(column)
	if w == 0 {
		return 0, false
	}
	return c.sum[column] / w, true
}

// add takes one sample: values that held for so many seconds. Rates count
// only when they are known.
func (c *cell) add(seconds float64, rates bool, v *[columns]float64) {
	for i := range v {
		if isRate(i) && !rates {
			continue
		}
		x := sane(v[i])
		if c.weight(i) == 0 || x > c.max[i] {
			c.max[i] = x
		}
		c.sum[i] += x * seconds
	}
	c.gauge += seconds
	if rates {
		c.rate += seconds
	}
}

// merge adds what another cell knows.
func (c *cell) merge(o *cell) {
	for i := range o.sum {
		if o.weight(i) == 0 {
			continue
		}
		if c.weight(i) == 0 || o.max[i] > c.max[i] {
			c.max[i] = o.max[i]
		}
		c.sum[i] += o.sum[i]
	}
	c.gauge += o.gauge
	c.rate += o.rate
}

// share is the part of a cell, as if its time were spread evenly.
func (c *cell) share(part float64) cell {
	out := cell{gauge: c.gauge * part, rate: c.rate * part, max: c.max}
	for i := range c.sum {
		out.sum[i] = c.sum[i] * part
	}
	return out
}

// most bounds every figure: what agents say is not to be believed blindly.
const most = 1e18

func sane(x float64) float64 {
	switch {
	case math.IsNaN(x) || x < 0:
		return 0
	case x > most:
		return most
	}
	return x
}
