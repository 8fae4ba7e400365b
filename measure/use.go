package measure

import (
	"math"
	"sync"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/nodeset"
	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/wire"
)

// Bounds of what is kept of how busy processors were: seconds, while there are not too
// many of them for one picture, and then longer steps. Of more than mostUseNodes nodes
// an HPL result has the mean.
const (
	usePoints    = 300
	mostUseNodes = 64
)

// use is how busy the nodes were while they were measured, as far as this server
// has heard. It is an illustration and decides nothing: who started anew meanwhile
// has less of it.
type use struct {
	// of is what agents say at their own pace, of those that do not say it of seconds.
	of func(muster.MachineID) []wire.Usage

	mu    sync.Mutex
	nodes map[string]*busy // by name; a node that is not here is not measured
	said  map[muster.MachineID]time.Time
}

// busy is how many cores of one node were busy, in steps of the same length from start.
type busy struct {
	start              time.Time
	step               time.Duration
	user, system, wait []float32 // sums
	count              []float32 // of how many
	seconds            bool      // its agent says it of seconds
	most               int       // how many steps are kept; 0: usePoints
}

// watch begins: from now on these nodes are asked.
func (u *use) watch(nodes []muster.Node) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.nodes == nil {
		u.nodes, u.said = map[string]*busy{}, map[muster.MachineID]time.Time{}
	}
	for _, n := range nodes {
		if u.nodes[n.Name] == nil {
			u.nodes[n.Name] = &busy{step: time.Second}
		}
	}
}

// watches reports whether a node is asked.
func (u *use) watches(node string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.nodes[node] != nil
}

// take files what a node says of its last seconds.
func (u *use) take(node string, now time.Time, s wire.UsageSeconds) {
	u.mu.Lock()
	defer u.mu.Unlock()
	b := u.nodes[node]
	if b == nil {
		return
	}
	if !b.seconds { // what it said before is coarser
		*b = busy{step: time.Second, seconds: true}
	}
	end := now.Add(-time.Duration(s.Ago * float64(time.Second)))
	for i := range s.User {
		b.add(end.Add(-time.Duration(len(s.User)-i)*time.Second), s.User[i], s.System[i], s.Wait[i])
	}
}

// gather takes what the agents that do not say it of seconds have said since it was
// last asked.
func (u *use) gather(s *subject) {
	if u.of == nil {
		return
	}
	u.watch(s.nodes)
	for _, n := range s.nodes {
		list := u.of(n.Machine)
		u.mu.Lock()
		if b := u.nodes[n.Name]; !b.seconds {
			for _, x := range list {
				if x.At.After(s.began()) && x.At.After(u.said[n.Machine]) {
					b.add(x.At, x.CPUUser, x.CPUSystem, x.CPUWait)
					u.said[n.Machine] = x.At
				}
			}
		}
		u.mu.Unlock()
	}
}

// add notes a sample of the time at.
func (b *busy) add(at time.Time, user, system, wait float64) {
	if b.start.IsZero() {
		b.start = at.UTC().Truncate(time.Second)
	}
	if at.Before(b.start) {
		return
	}
	i := int(at.Sub(b.start) / b.step)
	most := b.most
	if most == 0 {
		most = usePoints
	}
	for ; i >= most; i /= 2 {
		b.halve()
	}
	for len(b.count) <= i {
		b.user, b.system, b.wait, b.count = append(b.user, 0), append(b.system, 0), append(b.wait, 0), append(b.count, 0)
	}
	b.user[i] += float32(max(0, user))
	b.system[i] += float32(max(0, system))
	b.wait[i] += float32(max(0, wait))
	b.count[i]++
}

// halve makes one step of two.
func (b *busy) halve() {
	b.step *= 2
	for _, list := range []*[]float32{&b.user, &b.system, &b.wait, &b.count} {
		l := *list
		for i := range l {
			if i%2 == 0 {
				l[i/2] = l[i]
			} else {
				l[i/2] += l[i]
			}
		}
		*list = l[:(len(l)+1)/2]
	}
}

// series is what is kept of a node; false if it said nothing. A step in which nothing
// was said is like the one before it.
func (b *busy) series(name string) (muster.UseSeries, bool) {
	out := muster.UseSeries{Node: name, Start: b.start, Step: b.step.Seconds()}
	if len(b.count) == 0 {
		return out, false
	}
	var user, system, wait float64
	for i, n := range b.count {
		if n > 0 {
			user, system, wait = thousandths(b.user[i]/n), thousandths(b.system[i]/n), thousandths(b.wait[i]/n)
		}
		out.User, out.System, out.Wait = append(out.User, user), append(out.System, system), append(out.Wait, wait)
		out.CPU = append(out.CPU, thousandths(float32(user+system)))
	}
	return out, true
}

// thousandths of a core are more than anybody knows.
func thousandths(v float32) float64 { return math.Round(float64(v)*1000) / 1000 }

// series is that of one node.
func (u *use) series(node string) []muster.UseSeries {
	u.mu.Lock()
	defer u.mu.Unlock()
	if b := u.nodes[node]; b != nil {
		if s, ok := b.series(node); ok {
			return []muster.UseSeries{s}
		}
	}
	return nil
}

// all is that of some nodes, or of many of them the mean.
func (u *use) all(names []string) []muster.UseSeries {
	u.mu.Lock()
	defer u.mu.Unlock()
	return seriesOf(names, u.nodes, mostUseNodes)
}

// seriesOf are those of some nodes, or of more than most of them the mean.
func seriesOf(names []string, of map[string]*busy, most int) []muster.UseSeries {
	var list []muster.UseSeries
	var told []string
	sum := &busy{step: time.Second}
	for _, name := range names {
		if b := of[name]; b != nil && len(b.count) > 0 {
			sum.most = b.most
			if sum.start.IsZero() || b.start.Before(sum.start) {
				sum.start = b.start
			}
		}
	}
	for _, name := range names {
		b := of[name]
		if b == nil {
			continue
		}
		s, ok := b.series(name)
		if !ok {
			continue
		}
		told = append(told, name)
		if len(names) <= most {
			list = append(list, s)
			continue
		}
		for i := range s.CPU {
			sum.add(s.Start.Add(time.Duration(float64(i)*s.Step*float64(time.Second))), s.User[i], s.System[i], s.Wait[i])
		}
	}
	if len(names) > most {
		if s, ok := sum.series(nodeset.Fold(told)); ok {
			list = append(list, s)
		}
	}
	return list
}

// WantSeconds reports whether a node is to say how busy its processors are in each second.
func (r *Runner) WantSeconds(id muster.ClusterID, node string) bool {
	r.mu.Lock()
	j := r.open[id]
	r.mu.Unlock()
	return j != nil && j.use.watches(node)
}

// Seconds is told what a node says of them.
func (r *Runner) Seconds(now time.Time, id pki.NodeIdentity, u wire.UsageSeconds) {
	r.mu.Lock()
	j := r.open[id.Cluster]
	r.mu.Unlock()
	if j != nil {
		j.use.take(id.Node, now, u)
	}
}
