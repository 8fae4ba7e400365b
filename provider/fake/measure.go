package fake

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Speeds are what pretended machines pretend to measure.
type Speeds struct {
	// Spread is between machines, Noise between launches: shares of a figure.
	Spread, Noise float64
	// Fail is the share of launches that come to no end.
	Fail float64
	// Took is how long a launch takes.
	Took time.Duration
}

// Weaken makes a machine lack a share of its speed from now on.
func (w *World) Weaken(id muster.MachineID, share float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.byID[id].weak = share
}

// Loosen makes the link between two machines lack a share of its speed, in so many
// launches that measure it.
func (w *World) Loosen(a, b muster.MachineID, share float64, launches int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.loose = &looseLink{a: w.byID[a], b: w.byID[b], share: share, left: launches}
}

// looseLink is a link that is slow for some time.
type looseLink struct {
	a, b  *Machine
	share float64
	left  int // launches
}

// lacks is what the link between two machines lacks now.
func (w *World) lacks(a, b *Machine) float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.loose
	same := l != nil && (a == l.a && b == l.b || a == l.b && b == l.a)
	if !same || l.left == 0 {
		return 0
	}
	l.left--
	return l.share
}

// launchLink is a Link that reports how launches went, too.
type launchLink interface {
	Launched(ctx context.Context, end wire.LaunchEnd, out io.Reader) (wire.LaunchReply, error)
}

// launch pretends launches until the server wants no more.
func (a *agent) launch(ctx context.Context, cluster muster.ClusterID, o *wire.LaunchOrder) {
	link, ok := a.link.(launchLink)
	for ok && o != nil && !o.Cancel && a.sleep(ctx, max(a.m.w.o.Speeds.Took, time.Millisecond)) {
		end := wire.LaunchEnd{ID: o.ID, Seconds: a.m.w.o.Speeds.Took.Seconds()}
		var out bytes.Buffer
		if r := a.m.w.random(); r < a.m.w.o.Speeds.Fail {
			end.Exit, end.Error = 1, "simulated failure"
		} else {
			a.m.w.pretend(&out, cluster, *o)
		}
		reply, err := link.Launched(ctx, end, &out)
		if err != nil {
			return // it is asked for again, or nobody wants to know
		}
		o = reply.Next
	}
}

// single is work that goes on beside the reports, one piece at a time.
type single struct {
	busy atomic.Bool
	done sync.WaitGroup
}

func (s *single) begin(f func()) {
	if s.busy.CompareAndSwap(false, true) {
		s.done.Go(func() {
			defer s.busy.Store(false)
			f()
		})
	}
}

func (s *single) wait() { s.done.Wait() }

func (w *World) random() float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rand.Float64()
}

// fills notes which machine is which node.
func (w *World) fills(cluster muster.ClusterID, node string, m *Machine) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.nodes[nodeName{cluster, node}] = m
}

type nodeName struct {
	cluster muster.ClusterID
	node    string
}

// speaker writes the lines of a pretended probe.
type speaker struct {
	w       *World
	out     *json.Encoder
	r       *rand.Rand
	hosts   []*Machine
	names   []string
	samples int
}

// pretend writes what the probe, or the agent, would have printed.
func (w *World) pretend(out io.Writer, cluster muster.ClusterID, o wire.LaunchOrder) {
	w.mu.Lock()
	s := &speaker{w: w, out: json.NewEncoder(out), r: rand.New(rand.NewPCG(w.rand.Uint64(), 2))}
	for _, h := range slices.Repeat(o.Hosts, max(1, o.PerHost)) { // as mpirun does, in an order of its own
		s.names = append(s.names, h)
		s.hosts = append(s.hosts, w.nodes[nodeName{cluster, h}])
	}
	w.mu.Unlock()
	if o.Program == "muster-agent" && o.Args[0] == "conditions" {
		s.conditions()
		return
	}
	mode, seed := o.Args[0], json.Number(argument(o.Args, "--seed"))
	s.say("launch", map[string]any{
		"v": 1, "mode": mode, "seed": seed, "started": w.o.Clock.Now().Unix(), "ranks": len(s.names), "mpi": "Fake MPI", "compiler": "none",
		"flags": "", "source": "fake", "timer": "none", "clock": 1e-9, "cache": 1 << 20,
	})
	for i, h := range s.names {
		s.say("rank", map[string]any{"rank": i, "host": h, "cpus": "0-3", "blas": "/fake/libblas.so", "threads": 4})
	}
	switch mode {
	case "alone":
		for i := range s.names {
			s.sample(map[string]any{"metric": "dgemm", "unit": "flop/s", "rank": i, "host": s.names[i], "size": 1 << 20, "threads": 4}, 1e11*s.speed(i))
			s.sample(map[string]any{"metric": "stream.triad", "unit": "B/s", "rank": i, "host": s.names[i], "size": 1 << 20, "threads": 4}, 2e10*s.speed(i))
		}
	case "pairs":
		s.pairs(o.Input, func(a, b, round int) {
			s.sample(s.between(a, b, round, "pair.bandwidth", "B/s", 2000000), 1e9*min(s.speed(a), s.speed(b))*(1-s.w.lacks(s.hosts[a], s.hosts[b])))
		})
	case "net":
		s.pairs(o.Input, func(a, b, round int) {
			for _, way := range [][2]int{{a, b}, {b, a}} {
				s.sockets(way[0], way[1], round)
			}
		})
	case "disk":
		for i := range s.names {
			s.disk(i)
		}
	case "io":
		for _, metric := range []string{"io.shared.write", "io.shared.read", "io.each.write", "io.each.read"} {
			s.sample(map[string]any{"metric": metric, "unit": "B/s", "size": 256 << 20}, 5e8*s.speed(0))
		}
	case "sizes":
		s.pairs(o.Input, func(a, b, round int) {
			s.bySize("size", func(metric, unit string, size int64) map[string]any {
				return s.between(a, b, round, metric, unit, size)
			}, min(s.speed(a), s.speed(b)))
		})
	case "inside":
		for i := range len(o.Hosts) {
			s.bySize("inside.cache", func(metric, unit string, size int64) map[string]any {
				return map[string]any{"metric": metric, "unit": unit, "rank": i, "host": s.names[i], "size": size}
			}, 3*s.speed(i))
			s.say("omitted", map[string]any{"host": s.names[i], "what": "inside", "text": "left out, as it has none: two sockets"})
		}
	case "scale":
		s.scale()
	case "clients":
		for _, way := range []string{"clients.write", "clients.read"} {
			s.sample(map[string]any{"metric": way, "unit": "B/s", "size": 256 << 20}, 4e8*s.speed(0))
			s.sample(map[string]any{"metric": way + ".open", "unit": "s", "size": 256 << 20}, 1e-3/s.speed(0))
			s.sample(map[string]any{"metric": way + ".transfer", "unit": "B/s", "size": 256 << 20}, 5e8*s.speed(0))
			s.sample(map[string]any{"metric": way + ".close", "unit": "s", "size": 256 << 20}, 2e-3/s.speed(0))
		}
	case "streams":
		s.pairs(o.Input, s.streams)
	case "all":
		s.sample(map[string]any{"metric": "ring.natural.bandwidth", "unit": "B/s", "size": 2000000}, 1e9*s.speed(0))
	}
	s.say("end", map[string]any{"samples": s.samples})
}

// pairs does something with each pair of the rounds that were asked for.
func (s *speaker) pairs(rounds string, do func(a, b, round int)) {
	for round, text := range strings.Split(strings.TrimSpace(rounds), "/") {
		for _, pair := range strings.Fields(text) {
			var a, b int
			if n, _ := fmt.Sscanf(pair, "%d-%d", &a, &b); n == 2 {
				do(a, b, round)
			}
		}
	}
}

// between begins a sample of what is between two ranks.
func (s *speaker) between(a, b, round int, metric, unit string, size int64) map[string]any {
	return map[string]any{"metric": metric, "unit": unit, "rank": a, "host": s.names[a], "peer_rank": b, "peer": s.names[b], "size": size, "round": round}
}

// sockets are the figures of one way between two nodes. Most launches lose nothing.
func (s *speaker) sockets(a, b, round int) {
	const datagram = 1400
	speed := min(s.speed(a), s.speed(b))
	s.sample(s.between(a, b, round, "net.tcp.bandwidth", "B/s", 0), 1.2e9*speed)
	s.sample(s.between(a, b, round, "net.tcp.again", "1", 0), 0)
	loss := 0.0
	if s.r.Float64() < 0.2 {
		loss = 1e-4 * s.r.Float64()
	}
	s.sample(s.between(a, b, round, "net.udp.bandwidth", "B/s", datagram), 1.25e8*min(1, speed)*(1-loss))
	s.sample(s.between(a, b, round, "net.udp.loss", "1", datagram), loss)
	s.sample(s.between(a, b, round, "net.udp.jitter", "s", datagram), 5e-6*math.Exp(s.r.NormFloat64()))
}

// disk are the figures of a node's disk.
func (s *speaker) disk(i int) {
	const block, page = 1 << 20, 4 << 10
	of := func(metric, unit string, size int64) map[string]any {
		return map[string]any{"metric": metric, "unit": unit, "rank": i, "host": s.names[i], "size": size}
	}
	s.sample(of("disk.read", "B/s", block), 3e9*s.speed(i))
	s.sample(of("disk.write", "B/s", block), 2e9*s.speed(i))
	s.sample(of("disk.random.read", "op/s", page), 4e5*s.speed(i))
	s.sample(of("disk.random.write", "op/s", page), 2e5*s.speed(i))
	for _, waits := range []struct {
		metric  string
		seconds float64
	}{{"disk.latency.read", 8e-5}, {"disk.latency.write", 2e-5}} {
		s.sample(of(waits.metric, "s", page), waits.seconds/s.speed(i))
		s.sample(of(waits.metric+".p99", "s", page), 3*waits.seconds/s.speed(i))
	}
}

// bySize are the figures of two ranks at some sizes.
func (s *speaker) bySize(prefix string, of func(metric, unit string, size int64) map[string]any, speed float64) {
	for _, size := range []int64{1, 8, 4096, 2000000} {
		took := (1e-6 + float64(size)/1e9) / speed
		s.sample(of(prefix+".latency", "s", size), took)
		s.sample(of(prefix+".bandwidth", "B/s", size), float64(size)/took)
		s.sample(of(prefix+".both", "B/s", size), 1.8*float64(size)/took)
	}
}

// scale are ping-pong of the first two ranks, and rings.
func (s *speaker) scale() {
	for _, size := range []int64{8, 2000000} {
		took := (2e-6 + float64(size)/1e9) / s.speed(0)
		for _, ring := range []string{"scale.natural", "scale.random"} {
			s.sample(map[string]any{"metric": ring + ".latency", "unit": "s", "size": size}, took)
			s.sample(map[string]any{"metric": ring + ".bandwidth", "unit": "B/s", "size": size}, 2*float64(size)/took)
		}
		if len(s.names) > 1 {
			s.sample(s.between(0, 1, 0, "scale.pingpong.latency", "s", size), took/2)
			s.sample(s.between(0, 1, 0, "scale.pingpong.bandwidth", "B/s", size), 2*float64(size)/took)
		}
	}
}

// streams are sockets by connections and by rate.
func (s *speaker) streams(a, b, round int) {
	with := func(metric, unit, name string, at any) map[string]any {
		m := s.between(a, b, round, metric, unit, 0)
		m[name] = at
		return m
	}
	for _, n := range []int{1, 2, 4, 8} {
		s.sample(with("streams.tcp.bandwidth", "B/s", "streams", n), 1e9*math.Sqrt(float64(n))*min(s.speed(a), s.speed(b)))
	}
	for k, loss := range []float64{0, 0, 0.02} {
		rate := 1e6 / 8 * float64(int(256)<<k)
		s.sample(with("streams.udp.bandwidth", "B/s", "offered", rate), rate*(1-loss))
		s.sample(with("streams.udp.loss", "1", "offered", rate), loss)
		s.sample(with("streams.udp.jitter", "s", "offered", rate), 5e-6)
	}
}

// argument is the value of a flag.
func argument(args []string, name string) string {
	if i := slices.Index(args, name); i >= 0 && i+1 < len(args) {
		return args[i+1]
	}
	return ""
}

// say writes a line; memory takes everything.
func (s *speaker) say(kind string, fields map[string]any) {
	fields["kind"] = kind
	_ = s.out.Encode(fields)
}

func (s *speaker) sample(fields map[string]any, value float64) {
	s.samples++
	for k, v := range map[string]any{"value": value, "n": 3, "min": value * 0.99, "max": value * 1.01, "seconds": 0.1, "ok": true, "check": "none"} {
		fields[k] = v
	}
	s.say("sample", fields)
}

// speed of a host, against one like all others.
func (s *speaker) speed(i int) float64 {
	m, v := s.hosts[i], s.w.o.Speeds
	own := rand.New(rand.NewPCG(s.w.o.Seed, uint64(1+i)))
	lacks := 0.0
	if m != nil {
		own = rand.New(rand.NewPCG(s.w.o.Seed, uint64(m.index)))
		s.w.mu.Lock()
		lacks = m.weak
		s.w.mu.Unlock()
	}
	return math.Exp(v.Spread*own.NormFloat64()+v.Noise*s.r.NormFloat64()) * (1 - lacks)
}

func (s *speaker) conditions() {
	for i, h := range s.names {
		c := wire.NodeConditions{Host: h, Conditions: muster.TestEnvironment{Kernel: "fake", Virtualization: "none"}}
		if m := s.hosts[i]; m != nil {
			c.Conditions.Scratch = &muster.Scratch{Path: "/scratch", Type: "fake", Direct: true}
			c.Conditions.Tools = []string{"fio-fake", "iperf fake"}
			c.Conditions.Processor, c.Conditions.Cores, c.Conditions.Threads = m.facts.Processor, m.facts.Cores, m.facts.Threads
		}
		_ = s.out.Encode(c)
	}
}
