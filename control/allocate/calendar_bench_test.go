package allocate

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/admit"
	"github.com/muster-hpc/muster/control/place"
)

// size of a benchmarked site.
type size struct{ machines, clusters, promises, waiting int }

// benchSite has running clusters with ends on most of its machines, promises, and requests
// that wait.
func benchSite(z size) *Site {
	r := rand.New(rand.NewPCG(1, 2))
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	img := &muster.Image{ID: "sha256:1", Name: "hpc", Architecture: "amd64"}
	s := &Site{placer: place.Planner{}, images: oneImage{img}, clusters: map[muster.ClusterID]*muster.Cluster{}}
	s.snap = admit.Snapshot{Now: now, Turnover: func(string) (time.Duration, time.Duration) { return 5 * time.Minute, 5 * time.Minute }}
	for i := range z.machines {
		s.snap.Machines = append(s.snap.Machines, muster.Machine{ID: muster.MachineID(fmt.Sprintf("m%06d", i)), Provider: "metal", Phase: muster.MachineFree,
			Facts: muster.Facts{Architecture: "amd64", CPULevel: 3, Cores: 32 << (i % 3), Memory: 128 << 30, Class: fmt.Sprint("class", i*10/z.machines), Rack: fmt.Sprint("r", i/40)}})
	}
	at := 0
	for k := range z.clusters {
		c := &muster.Cluster{ID: muster.ClusterID(fmt.Sprint("c-r", k)), Phase: muster.ClusterReady, Expires: now.Add(time.Duration(1+r.IntN(72*60)) * time.Minute)}
		s.clusters[c.ID] = c
		for range z.machines * 9 / 10 / z.clusters {
			m := &s.snap.Machines[at]
			m.Phase, m.Cluster, m.Node = muster.MachineActive, c.ID, "n01"
			at++
		}
	}
	wish := func(nodes int) muster.Spec {
		spec := muster.Spec{Name: "x", Nodes: nodes, Min: nodes, Head: muster.HeadShared, Placement: muster.PlacePack, Egress: muster.EgressNone, Queue: true, Walltime: muster.Duration(time.Duration(1+r.IntN(24)) * time.Hour)}
		if r.IntN(3) > 0 {
			spec.Machine.Class = fmt.Sprint("class", r.IntN(10))
		}
		return spec
	}
	snap := s.snap
	snap.Times = s.timetable(nil)
	var asked []admit.Waiting
	for k := range z.promises {
		spec := wish(1 + r.IntN(12))
		spec.Start = muster.Start{After: now.Add(time.Duration(r.IntN(30*24)) * time.Hour)}
		asked = append(asked, admit.Waiting{Cluster: muster.ClusterID(fmt.Sprint("c-p", k)), Spec: spec, Image: img})
	}
	for _, got := range admit.Schedule(snap, asked, s.placer) {
		if got.Known {
			s.clusters[got.Cluster] = &muster.Cluster{ID: got.Cluster, Phase: muster.ClusterReserved, Spec: got.Spec,
				Promise: &muster.Promise{Start: got.Slot.Start, End: got.Slot.End, Lead: muster.Duration(5 * time.Minute), Plan: got.Slot.Plan}}
		}
	}
	s.binding = s.timetable(nil)
	s.snap.Times = s.binding
	for k := range z.waiting {
		s.ahead = append(s.ahead, admit.Waiting{Cluster: muster.ClusterID(fmt.Sprint("c-q", k)), Spec: wish(1 + r.IntN(32)), Image: img})
	}
	return s
}

// oneImage is all that there is.
type oneImage struct{ img *muster.Image }

func (i oneImage) Resolve(string) (*muster.Image, error) { return i.img, nil }

func demand(nodes int, alternatives bool) Demand {
	return Demand{Cluster: "c-new", Purpose: Create, Image: &muster.Image{ID: "sha256:1", Name: "hpc", Architecture: "amd64"}, Alternatives: alternatives, Spec: muster.Spec{
		Name: "x", Nodes: nodes, Min: nodes, Head: muster.HeadShared, Placement: muster.PlacePack, Egress: muster.EgressNone, Queue: true, Walltime: muster.Duration(8 * time.Hour),
		Machine: muster.Constraints{Class: "class9"}}}
}

// BenchmarkAdmission is what `make bench-admission` runs: answers of a site with a calendar.
func BenchmarkAdmission(b *testing.B) {
	for _, z := range []size{{1_000, 100, 200, 0}, {10_000, 500, 1_000, 0}, {100_000, 2_000, 5_000, 0}} {
		s := benchSite(z)
		name := fmt.Sprintf("machines=%d", z.machines)
		b.Run(name+"/now", func(b *testing.B) {
			for b.Loop() {
				if a := s.Ask(demand(4, false)); a.Verdict != muster.VerdictNow {
					b.Fatal(a.Verdict)
				}
			}
		})
		b.Run(name+"/whole", func(b *testing.B) {
			for b.Loop() {
				d := demand(z.machines/20, true)
				d.Spec.Machine.Class = "class0"
				if a := s.Ask(d); a.Verdict != muster.VerdictQueued || a.StartAt.IsZero() || len(a.Alternatives) == 0 {
					b.Fatal(a.Verdict, a.StartAt, a.Alternatives)
				}
			}
		})
		b.Run(name+"/promise", func(b *testing.B) {
			d := demand(16, false)
			d.Spec.Start = muster.Start{Earliest: true}
			for b.Loop() {
				if a := s.Ask(d); a.Verdict != muster.VerdictReserved {
					b.Fatal(a.Verdict)
				}
			}
		})
		b.Run(name+"/exchange", func(b *testing.B) { // promises move out of the way
			d := demand(1, false)
			for d.Spec.Nodes = z.machines / 10; d.Spec.Nodes > 0; d.Spec.Nodes-- {
				if d.Spec.Min = d.Spec.Nodes; len(s.Ask(d).Moves) > 0 {
					break
				}
			}
			if d.Spec.Nodes == 0 {
				b.Skip("none has to move")
			}
			for b.Loop() {
				if a := s.Ask(d); len(a.Moves) == 0 {
					b.Fatal(a.Verdict)
				}
			}
		})
		b.Run(name+"/calendar", func(b *testing.B) { // the timetable itself
			for b.Loop() {
				s.timetable(nil)
			}
		})
	}
	s := benchSite(size{10_000, 500, 1_000, 1_000})
	b.Run("machines=10000/waiting=1000", func(b *testing.B) {
		for b.Loop() {
			s.scheduled = nil
			known := 0
			for _, x := range s.Schedule() {
				if x.Known {
					known++
				}
			}
			if known != 1000 {
				b.Fatal(known)
			}
		}
	})
}
