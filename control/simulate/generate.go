package simulate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// Generated says what a made-up workload is like.
type Generated struct {
	Machines, Requests int
	Length             time.Duration // of the time in which they come
	Seed               uint64
	Users              int
	// Shares of requests, 0 to 1.
	Early, Extended, Promised float64
	Failures, Pauses          int
	// Load is how much of the machines' time is asked for in runtimes. 0: 0.8.
	Load float64
}

// Generate makes a workload with the rhythm of days and weeks: most requests come on working
// days between nine and six. Sizes are powers of two more often than not, runtimes are
// log-normal, and people ask for more time than they need.
func Generate(g Generated) Workload {
	r := rand.New(rand.NewPCG(g.Seed, 0x6d7573746572))
	users := max(1, g.Users)
	w := Workload{Machines: g.Machines, Notes: []string{fmt.Sprintf("made up with seed %d", g.Seed)}}
	total := 0.0 // machine-nanoseconds: more than a Duration holds
	for range g.Requests {
		j := Job{User: fmt.Sprintf("u%02d", int(math.Abs(r.NormFloat64())*float64(users)/2)%users), Submit: arrival(r, g.Length)}
		limit := max(1, g.Machines/4)
		j.Nodes = min(limit, 1<<r.IntN(1+int(math.Log2(float64(limit)))))
		if r.IntN(4) == 0 {
			j.Nodes = 1 + r.IntN(j.Nodes)
		}
		runtime := math.Exp(r.NormFloat64()*1.3 + math.Log(4*3600))
		j.Runtime = time.Duration(min(max(runtime, 600), 5*24*3600)) * time.Second
		j.Walltime = j.Runtime
		w.Jobs = append(w.Jobs, j)
		total += float64(j.Runtime) * float64(j.Nodes)
	}
	load := g.Load
	if load == 0 {
		load = 0.8
	}
	scale := load * float64(g.Length) * float64(g.Machines) / max(total, 1)
	pausable := make([]int, 0, len(w.Jobs))
	for i := range w.Jobs {
		j := &w.Jobs[i]
		j.Runtime = max(time.Duration(float64(j.Runtime)*scale), 5*time.Minute).Round(time.Minute)
		j.Walltime = j.Runtime
		if r.Float64() < g.Early {
			j.Walltime = (j.Runtime * time.Duration(12+r.IntN(30)) / 10).Round(time.Minute)
		}
		if r.Float64() < g.Extended {
			j.Extend = (j.Runtime / time.Duration(2+r.IntN(4))).Round(time.Minute)
		}
		if r.Float64() < g.Promised {
			j.Ahead = time.Duration(1+r.IntN(14*24)) * time.Hour
		}
		if j.Runtime > 2*time.Hour {
			pausable = append(pausable, i)
		}
	}
	r.Shuffle(len(pausable), func(a, b int) { pausable[a], pausable[b] = pausable[b], pausable[a] })
	for _, i := range pausable[:min(g.Pauses, len(pausable))] {
		j := &w.Jobs[i]
		j.PauseAt, j.PauseFor, j.Extend = j.Runtime/2, time.Duration(4+r.IntN(72))*time.Hour, 0
	}
	for range g.Failures {
		w.Failures = append(w.Failures, Failure{At: time.Duration(r.Float64() * float64(g.Length)).Round(time.Second), Machine: r.IntN(max(1, g.Machines)), For: time.Duration(4+r.IntN(96)) * time.Hour})
	}
	slices.SortStableFunc(w.Jobs, func(a, b Job) int { return int(a.Submit - b.Submit) })
	slices.SortFunc(w.Failures, func(a, b Failure) int { return int(a.At - b.At) })
	for i := range w.Jobs {
		w.Jobs[i].Number = i + 1
	}
	return w
}

// arrival is when a request comes: the week begins on a Monday.
func arrival(r *rand.Rand, length time.Duration) time.Duration {
	for {
		at := time.Duration(r.Float64() * float64(length))
		day, hour := int(at/(24*time.Hour))%7, at%(24*time.Hour)/time.Hour
		weight := 0.15
		switch {
		case day < 5 && hour >= 9 && hour < 18:
			weight = 1
		case day < 5 && hour >= 7 && hour < 22:
			weight = 0.4
		}
		if r.Float64() < weight {
			return at.Round(time.Second)
		}
	}
}
