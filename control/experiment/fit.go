package experiment

import (
	"errors"
	"math"

	"github.com/muster-hpc/muster/internal/stat"
)

// leastError is the smallest error of a fit that is believed, as a share: a machine measured twice
// differs by as much.
const leastError = 0.003

var errSingular = errors.New("the values lie too close together to tell its terms apart")

// fit is a sum of terms, each with a factor that is not below zero, fitted to values above zero
// such that their relative differences from it are smallest.
type fit struct {
	factor []float64
	// r is the triangle of all terms, from which the uncertainty follows; left counts the values
	// beyond the terms. Terms whose factor is zero count, too: that they are zero was not known.
	r     [][]float64
	left  int
	error float64
}

// fitted fits terms[i] to y[i]. There are more values than terms.
func fitted(terms [][]float64, y []float64) (fit, error) {
	k := len(terms[0])
	columns := make([][]float64, k)
	for j := range columns {
		columns[j] = make([]float64, len(y))
		for i := range y {
			columns[j][i] = terms[i][j] / y[i]
		}
	}
	f := fit{factor: make([]float64, k), left: len(y) - k}
	var ok bool
	if _, f.r, ok = solved(columns); !ok || f.left < 1 {
		return fit{}, errSingular
	}
	// Of all choices of terms whose factors are not below zero, the one that fits best.
	least := math.Inf(1)
	for set := 1; set < 1<<k; set++ {
		var some [][]float64
		for j := range k {
			if set>>j&1 == 1 {
				some = append(some, columns[j])
			}
		}
		part, _, ok := solved(some)
		factor, next := make([]float64, k), 0
		for j := range k {
			if ok && set>>j&1 == 1 {
				factor[j] = part[next]
				next++
				ok = factor[j] >= 0
			}
		}
		if !ok {
			continue
		}
		sum := 0.0
		for i := range y {
			d := -1.0
			for j := range k {
				d += factor[j] * columns[j][i]
			}
			sum += d * d
		}
		if sum < least {
			least, f.factor = sum, factor
		}
	}
	f.error = math.Sqrt(least / float64(f.left))
	return f, nil
}

// solved solves columns x = 1 for the least squares, by Gram and Schmidt. False: columns are as
// good as multiples of others.
func solved(columns [][]float64) (x []float64, r [][]float64, ok bool) {
	k := len(columns)
	q, r := make([][]float64, k), make([][]float64, k)
	right := make([]float64, k)
	rest := make([]float64, len(columns[0]))
	for i := range rest {
		rest[i] = 1
	}
	for j, c := range columns {
		v := append([]float64(nil), c...)
		r[j] = make([]float64, k)
		for i := range j {
			r[i][j] = dot(q[i], v)
			take(v, q[i], r[i][j])
		}
		length := math.Sqrt(dot(v, v))
		if !(length > 1e-9*math.Sqrt(dot(c, c))) {
			return nil, nil, false
		}
		r[j][j] = length
		q[j] = make([]float64, len(v))
		take(q[j], v, -1/length)
		right[j] = dot(q[j], rest)
		take(rest, q[j], right[j])
	}
	x = make([]float64, k)
	for i := k - 1; i >= 0; i-- {
		x[i] = right[i]
		for j := i + 1; j < k; j++ {
			x[i] -= r[i][j] * x[j]
		}
		x[i] /= r[i][i]
	}
	return x, r, true
}

func dot(a, b []float64) (sum float64) {
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

// take takes a multiple of b from a.
func take(a, b []float64, times float64) {
	for i := range a {
		a[i] -= times * b[i]
	}
}

// value is the sum for some terms.
func (f fit) value(terms []float64) float64 { return dot(f.factor, terms) }

// within is the value with the interval that holds one measurement there, as far as the model
// holds.
func (f fit) within(terms []float64, level float64) (value float64, in stat.Interval) {
	value = f.value(terms)
	// The length of the solution of r' z = terms/value is the uncertainty of the factors there.
	z := make([]float64, len(terms))
	for i := range z {
		z[i] = terms[i] / value
		for j := range i {
			z[i] -= f.r[j][i] * z[j]
		}
		z[i] /= f.r[i][i]
	}
	half := stat.StudentQuantile((1+level)/2, float64(f.left)) * max(f.error, leastError) * math.Sqrt(1+dot(z, z))
	return value, stat.Interval{Low: value * math.Exp(-half), High: value * math.Exp(half), Level: level}
}
