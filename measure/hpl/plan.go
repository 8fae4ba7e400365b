package hpl

// Plan is what a driver asks for if everything takes as long as expected, all
// launches succeed and all settings are equally fast: for showing beforehand, and
// for the same errors as [NewDriver].
func Plan(s Site) ([]Run, error) {
	d, err := NewDriver(s)
	if err != nil {
		return nil, err
	}
	var done []Outcome
	var out []Run
	for {
		r, ok := d.Next(done)
		if !ok {
			return out, nil
		}
		out = append(out, r)
		done = append(done, Outcome{Run: r, Took: r.Expected, Solution: Solution{
			N: r.N, NB: r.NB, P: r.P, Q: r.Q, Rate: d.guess(), Seconds: Flops(r.N) / d.guess(),
		}})
	}
}
