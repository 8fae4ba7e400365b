package simulate

import (
	"slices"
	"time"
)

// Result is what came of a workload.
type Result struct {
	Policy string `json:"policy"`
	Jobs   int    `json:"jobs"`
	// Use is the share of the machines' time in which jobs ran, from the first submission
	// until the last one.
	Use float64 `json:"use"`
	// Waits from when a job wanted to start until its people could log in.
	WaitMedian Seconds `json:"wait_median_seconds"`
	Wait95     Seconds `json:"wait_p95_seconds"`
	WaitMost   Seconds `json:"wait_max_seconds"`
	// WaitSmall and WaitLarge are the means of the smaller and of the larger half of jobs.
	WaitSmall Seconds `json:"wait_small_mean_seconds"`
	WaitLarge Seconds `json:"wait_large_mean_seconds"`
	// Slowdown is the mean of (wait + run) / run, with runs of ten minutes at least
	// (bounded slowdown: Feitelson and others, JSSPP 1997).
	Slowdown float64 `json:"slowdown"`
	// Fairness is Jain's index over the users' mean slowdowns: 1 when all have the same
	// (Jain, Chiu and Hawe, DEC-TR-301, 1984).
	Fairness float64 `json:"fairness"`
	// Promises that were given, Moved by failures, and Late: not kept at their time, which
	// must not be. Muster only.
	Promises int `json:"promises"`
	Moved    int `json:"moved"`
	Late     int `json:"late"`
	// Told counts the people of moved promises who were told.
	Told       int `json:"told"`
	Extended   int `json:"extended"`
	Refused    int `json:"extensions_refused"`
	Pauses     int `json:"pauses"`
	Failures   int `json:"failures"`
	Unfinished int `json:"unfinished"`
	// Waits are all of them, in order, for a picture; UseOverTime the machines in use by hour.
	Waits       []time.Duration `json:"-"`
	UseOverTime []float64       `json:"-"`
	Took        time.Duration   `json:"-"`
}

// Seconds is a duration in JSON.
type Seconds float64

// outcome is what became of one job.
type outcome struct {
	job     *Job
	wait    time.Duration
	run     time.Duration
	started bool
	ended   bool
}

// sum computes a result of outcomes.
func sum(policy string, w Workload, list []outcome, busy float64, hours []float64) Result {
	res := Result{Policy: policy, Jobs: len(list), UseOverTime: hours}
	if len(list) == 0 {
		return res
	}
	span := time.Duration(0)
	sizes := make([]int, 0, len(list))
	for i := range list {
		span = max(span, list[i].job.Submit)
		sizes = append(sizes, list[i].job.Nodes)
	}
	slices.Sort(sizes)
	half := sizes[len(sizes)/2]
	users := map[string][2]float64{}
	var small, large [2]float64
	for i := range list {
		o := &list[i]
		if !o.started {
			res.Unfinished++
			continue
		}
		res.Waits = append(res.Waits, o.wait)
		run := max(o.run, 10*time.Minute)
		slow := max(1, float64(o.wait+run)/float64(run))
		res.Slowdown += slow
		u := users[o.job.User]
		users[o.job.User] = [2]float64{u[0] + slow, u[1] + 1}
		to := &small
		if o.job.Nodes > half {
			to = &large
		}
		to[0], to[1] = to[0]+o.wait.Seconds(), to[1]+1
	}
	slices.Sort(res.Waits)
	if n := len(res.Waits); n > 0 {
		res.WaitMedian, res.Wait95, res.WaitMost = Seconds(res.Waits[n/2].Seconds()), Seconds(res.Waits[min(n-1, n*95/100)].Seconds()), Seconds(res.Waits[n-1].Seconds())
		res.Slowdown /= float64(n)
	}
	res.WaitSmall, res.WaitLarge = Seconds(small[0]/max(small[1], 1)), Seconds(large[0]/max(large[1], 1))
	var total, squares float64
	for _, u := range users {
		mean := u[0] / u[1]
		total += mean
		squares += mean * mean
	}
	if squares > 0 {
		res.Fairness = total * total / (float64(len(users)) * squares)
	}
	if span > 0 && w.Machines > 0 {
		res.Use = busy / (span.Hours() * float64(w.Machines))
	}
	return res
}

// meter adds up what is in use, also by the hour.
type meter struct {
	until time.Duration
	busy  float64 // machine-hours
	hours []float64
	all   float64
}

// add counts so many machines in use from a time until another.
func (m *meter) add(machines int, from, to time.Duration) {
	to = min(to, m.until)
	if to <= from {
		return
	}
	m.busy += float64(machines) * (to - from).Hours()
	for h := from / time.Hour; h*time.Hour < to; h++ {
		for int(h) >= len(m.hours) {
			m.hours = append(m.hours, 0)
		}
		part := min(to, (h+1)*time.Hour) - max(from, h*time.Hour)
		m.hours[h] += float64(machines) * float64(part) / float64(time.Hour) / m.all
	}
}
