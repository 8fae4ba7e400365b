package stat

import "math"

// pairPart is a connected part of the graph. row, if it is not nil, is the
// equation 2 root + row b = 0.
type pairPart struct{ row []float64 }

// fix takes the equation k root + row b = 0, where k is -2, 0 or 2, and returns
// what it says of the distances alone, if it is not used up.
func (p *pairPart) fix(k float64, row []float64) []float64 {
	if k == 0 {
		return row
	}
	if k < 0 {
		for i := range row {
			row[i] = -row[i]
		}
	}
	if p.row == nil {
		p.row = row
		return nil
	}
	for i := range row {
		row[i] -= p.row[i]
	}
	return row
}

// equations is a set of independent linear equations row b = 0, each with a 1 at
// its pivot and zeros at those of the others.
type equations struct {
	width int
	rows  [][]float64
	pivot []int
}

func (s *equations) add(row []float64) {
	for i, r := range s.rows {
		if f := row[s.pivot[i]]; f != 0 {
			for k := range row {
				row[k] -= f * r[k]
			}
		}
	}
	best := 0
	for k, v := range row {
		if math.Abs(v) > math.Abs(row[best]) {
			best = k
		}
	}
	if s.width == 0 || math.Abs(row[best]) < 1e-6 { // the coefficients were whole numbers
		return
	}
	f := row[best]
	for k := range row {
		row[k] /= f
	}
	for _, r := range s.rows {
		if f := r[best]; f != 0 {
			for k := range r {
				r[k] -= f * row[k]
			}
		}
	}
	s.rows, s.pivot = append(s.rows, row), append(s.pivot, best)
}

// null is a basis of all b that fulfil the equations, over the used places.
func (s *equations) null(used []bool) [][]float64 {
	bound := make([]bool, s.width)
	for _, p := range s.pivot {
		bound[p] = true
	}
	var out [][]float64
	for k := range s.width {
		if bound[k] || !used[k] {
			continue
		}
		b := make([]float64, s.width)
		b[k] = 1
		for i, r := range s.rows {
			b[s.pivot[i]] = -r[k]
		}
		out = append(out, b)
	}
	return out
}
