package stat

import "math"

const (
	// huber and tukey make both estimates 95 % as precise as least squares on
	// normal values.
	huber = 1.345
	tukey = 4.685
	// leastWeight keeps a node whose links are all outliers attached to the rest,
	// so that every step has a solution. An outlier further out weighs less still, so
	// that none pulls more than a ten-thousandth of what a good pair can.
	leastWeight = 1e-4
	// leastScale is a scale in logs below which nothing is an outlier: one part in a
	// million, which no measurement reaches.
	leastScale = 1e-6
	// pairSteps bounds both rounds; tens are normal.
	pairSteps = 100
)

// fit sets all but Links, DF and graph.
func (f *PairFit) fit(pairs []Pair) {
	g := f.graph
	y := make([]float64, len(pairs))
	for i, p := range pairs {
		y[i] = math.Log(p.Value)
	}
	// Around zero fewer digits are lost.
	level := Median(y)
	for i := range y {
		y[i] -= level
	}
	effects := make([]float64, g.size())
	f.Residuals, f.Weights = make([]float64, len(y)), make([]float64, len(y))
	copy(f.Residuals, y)
	for i := range f.Weights {
		f.Weights[i] = 1
	}
	step := func() float64 { // one weighted least squares; how far it moved the fit
		d := g.solve(f.Weights, g.transposed(f.Weights, f.Residuals))
		for i := range effects {
			effects[i] += d[i]
		}
		most := 0.0
		for e, p := range g.ends {
			r := y[e] - effects[p[0]] - effects[p[1]] - effects[p[2]]
			most = max(most, math.Abs(r-f.Residuals[e]))
			f.Residuals[e] = r
		}
		return most
	}
	step()
	scale := f.scale()
	for range pairSteps {
		for e, r := range f.Residuals {
			f.Weights[e] = min(1, huber*scale/max(math.Abs(r), leastScale))
		}
		moved, before := step(), scale
		scale = f.scale()
		if moved <= 1e-3*scale && math.Abs(scale-before) <= 1e-3*before {
			break
		}
	}
	for range pairSteps {
		for e, r := range f.Residuals {
			u := math.Abs(r) / (tukey * scale)
			w := max(0, 1-u*u)
			f.Weights[e] = max(w*w, leastWeight/max(1, u))
		}
		if step() <= 1e-7*scale {
			break
		}
	}
	f.Scale = f.scale()
	f.centre(effects, level)
}

// scale is the robust standard deviation of the rest, made up for what the
// effects took of it.
func (f *PairFit) scale() float64 {
	n := float64(len(f.Residuals))
	abs := make([]float64, len(f.Residuals))
	for i, r := range f.Residuals {
		abs[i] = math.Abs(r)
	}
	return max(leastScale, madFactor*Median(abs)*math.Sqrt(n/max(1, n-float64(f.graph.rank))))
}

// centre applies the constraint and names the effects.
func (f *PairFit) centre(effects []float64, level float64) {
	g := f.graph
	var at []float64
	for i, l := range g.links {
		if l > 0 {
			at = append(at, effects[i])
		}
	}
	m := Median(at)
	f.Nodes, f.Distances = make([]float64, g.nodes), make([]float64, g.distances)
	for i := range f.Nodes {
		f.Nodes[i] = effects[i] - m
		if g.links[i] == 0 {
			f.Nodes[i] = math.NaN()
		}
	}
	for d := range f.Distances {
		f.Distances[d] = effects[g.nodes+d] + 2*m + level
		if !g.used[d] {
			f.Distances[d] = math.NaN()
		}
	}
}

// transposed is X'Wr: by effect, the sum of the weighted values of its pairs.
func (g *pairGraph) transposed(w, r []float64) []float64 {
	out := make([]float64, g.size())
	for e, p := range g.ends {
		v := w[e] * r[e]
		out[p[0]] += v
		out[p[1]] += v
		out[p[2]] += v
	}
	return out
}

// solve finds a v with X'WX v = c by conjugate gradients, scaled by the diagonal
// (Golub and Van Loan, Matrix computations, 11.5). Of the many solutions that
// differ by the constraint it finds one. What rounding put into c and the rest that
// no v can explain is taken out again, as it would grow with every step.
func (g *pairGraph) solve(w, c []float64) []float64 {
	n := g.size()
	diagonal := make([]float64, n)
	for e, p := range g.ends {
		for _, k := range p {
			diagonal[k] += w[e]
		}
	}
	for k, d := range diagonal {
		if d == 0 { // of no pair
			diagonal[k] = 1
		}
	}
	v, z, p, q := make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
	r := append([]float64(nil), c...)
	g.explainable(r)
	rz := 0.0
	for k := range r {
		z[k] = r[k] / diagonal[k]
		rz += r[k] * z[k]
	}
	copy(p, z)
	enough := 1e-22 * rz
	for range 4*n + 20 {
		if rz <= enough {
			break
		}
		clear(q)
		for e, i := range g.ends {
			s := w[e] * (p[i[0]] + p[i[1]] + p[i[2]])
			q[i[0]] += s
			q[i[1]] += s
			q[i[2]] += s
		}
		pq := 0.0
		for k := range p {
			pq += p[k] * q[k]
		}
		if !(pq > 0) {
			break
		}
		a, before := rz/pq, rz
		rz = 0
		for k := range p {
			v[k] += a * p[k]
			r[k] -= a * q[k]
		}
		g.explainable(r)
		for k := range p {
			z[k] = r[k] / diagonal[k]
			rz += r[k] * z[k]
		}
		for k := range p {
			p[k] = z[k] + rz/before*p[k]
		}
	}
	return v
}

// explainable takes out of c what is along the constraint: nodes up by one,
// distances down by two.
func (g *pairGraph) explainable(c []float64) {
	dot, length := 0.0, 0.0
	along := func(k int) float64 {
		switch {
		case k >= g.nodes && g.used[k-g.nodes]:
			return -2
		case k < g.nodes && g.links[k] > 0:
			return 1
		}
		return 0
	}
	for k, v := range c {
		dot += v * along(k)
		length += along(k) * along(k)
	}
	for k := range c {
		c[k] -= dot / length * along(k)
	}
}
