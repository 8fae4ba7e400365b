package stat

import "math"

// BetaInc is the regularized incomplete beta function I_x(a, b): the chance that
// a value of the beta distribution with a and b is at most x. All tails of the
// binomial, t and F distributions are made of it. NaN unless a, b > 0 and x is in
// [0, 1].
//
// Source: the continued fraction of DLMF 8.17.22 by Lentz's method; the term in
// front of it by Loader (2000), Fast and accurate computation of binomial
// probabilities, because differences of log-gammas lose all digits for large a, b.
func BetaInc(a, b, x float64) float64 {
	p, _ := betaInc(a, b, x, 1-x)
	return p
}

// betaInc is I_x(a, b) and what is missing to 1, each with its own digits; y is
// 1-x, which the caller often knows better.
func betaInc(a, b, x, y float64) (p, q float64) {
	switch {
	case !(a > 0 && b > 0 && x >= 0 && y >= 0 && x <= 1 && y <= 1) || math.IsInf(a, 0) || math.IsInf(b, 0):
		return math.NaN(), math.NaN()
	case x == 0:
		return 0, 1
	case y == 0:
		return 1, 0
	}
	if x*(a+b+2) > a+1 { // the fraction converges fast on the other side
		q = min(binomialTerm(b, a, y, x)*a*(b/(a+b))/betaFraction(b, a, y, x), 1)
		return 1 - q, q
	}
	p = min(binomialTerm(a, b, x, y)*b*(a/(a+b))/betaFraction(a, b, x, y), 1)
	return p, 1 - p
}

// betaFraction is the continued fraction b0 + a1/(b1 + a2/(b2 + ...)), the even
// part of DLMF 8.17.22, which does not cancel where x is near 1. It takes about the
// square root of max(a, b) steps at most.
func betaFraction(a, b, x, y float64) float64 {
	const tiny, steps = 1e-300, 2_000_000
	away := func(v float64) float64 { // from zero
		if math.Abs(v) < tiny {
			return tiny
		}
		return v
	}
	off := a*y - b*x
	f := away(a * (off + 1) / (a + 1))
	c, d := f, 0.0
	for i := 1; i < steps; i++ {
		m := float64(i)
		k := a + 2*m
		top := (a + m - 1) / (k - 1) * ((a + b + m - 1) / (k - 1)) * m * (b - m) * x * x
		under := m + m*(b-m)*x/(k-1) + (a+m)*(off+1+m*(1+y))/(k+1)
		d = 1 / away(under+top*d)
		c = away(under + top/c)
		f *= c * d
		if math.Abs(c*d-1) < 1e-16 {
			break
		}
	}
	return f
}

// binomialTerm is Gamma(a+b+1) / (Gamma(a+1) Gamma(b+1)) x^a y^b for a, b > 0 and
// x + y = 1: the chance of a hits among a+b, where these are whole.
func binomialTerm(a, b, x, y float64) float64 {
	n := a + b
	off := a*y - b*x // a - n*x, with its digits
	e := stirlingRest(n) - stirlingRest(a) - stirlingRest(b) - deviance(a, n*x, off) - deviance(b, n*y, -off)
	return math.Exp(e) * math.Sqrt(n/a/(2*math.Pi*b))
}

// stirlingRest is what Stirling's formula leaves of log Gamma(n+1):
// log(n!) - log(sqrt(2 pi n) (n/e)^n).
func stirlingRest(n float64) float64 {
	if n < 12 {
		l, _ := math.Lgamma(n + 1)
		return l - (n+0.5)*math.Log(n) + n - 0.5*math.Log(2*math.Pi)
	}
	r := 1 / n
	s := r * r
	return r * (1./12 - s*(1./360-s*(1./1260-s*(1./1680-s*(1./1188-s*691./360360)))))
}

// deviance is x log(x/m) + m - x, where off is x - m.
func deviance(x, m, off float64) float64 {
	if m == 0 { // x/m has no digits; the chance is nothing
		return math.Inf(1)
	}
	if math.Abs(off) > 0.1*(x+m) {
		return x*math.Log(x/m) - off
	}
	// log(x/m) = 2 artanh(t) with t = (x-m)/(x+m); its first term and m-x together
	// are (x-m) t.
	t := off / (x + m)
	sum, power := off*t, 2*x*t
	for k := 3.0; k < 100; k += 2 {
		power *= t * t
		more := sum + power/k
		if more == sum {
			break
		}
		sum = more
	}
	return sum
}
