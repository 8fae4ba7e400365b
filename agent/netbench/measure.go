package netbench

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/muster-hpc/muster/agent/rendezvous"
	"github.com/muster-hpc/muster/agent/tool"
	"github.com/muster-hpc/muster/wire"
)

// Program is what measures.
const Program = "iperf3"

// firstPort is the first of a range of our own, below those that the kernel gives to
// others. Each test has its port: none meets the server of the one before it.
const firstPort = wire.MeetPort + 1

// datagram is how large those of UDP are: they fit through any network whole.
const datagram = 1400

// mostRate is what is sent by UDP at most, in bits per second: one processor must be
// able to send and to receive it.
const mostRate = 1e9

// answerWithin is how long it is tried again until the other node's server listens.
const answerWithin = 5 * time.Second

// Options say what is measured.
type Options struct {
	Seconds float64 // that each test takes, in whole seconds and one at least
	Rounds  string  // pairs of ranks
	// Port is the first of four; 0: 15201.
	Port int
}

// Measure measures the pairs of this rank, round by round. What could not be measured
// is an omission, of which each rank has one at most: nobody is condemned because a
// test did not come about.
func Measure(ctx context.Context, w *rendezvous.World, o Options) ([]rendezvous.Sample, []rendezvous.Omission, error) {
	return measure(ctx, w, o, "net", (*meter).ask)
}

// measure has the first of each pair of this rank ask.
func measure(ctx context.Context, w *rendezvous.World, o Options, what string, ask func(*meter, context.Context, int, pair)) ([]rendezvous.Sample, []rendezvous.Omission, error) {
	rounds, err := parseRounds(o.Rounds, w.Size)
	if err != nil {
		return nil, nil, err
	}
	if o.Port == 0 {
		o.Port = firstPort
	}
	mine, err := json.Marshal(tool.There(Program))
	if err != nil {
		return nil, nil, err
	}
	all, err := w.All(mine)
	if err != nil {
		return nil, nil, err
	}
	has := make([]bool, len(all))
	for r, b := range all {
		_ = json.Unmarshal(b, &has[r]) // what cannot be read has none
	}
	var omitted []rendezvous.Omission
	if !has[w.Rank] {
		omitted = []rendezvous.Omission{{Host: w.Hosts()[w.Rank], What: "net", Text: "its image has no " + Program}}
	}
	m := meter{w: w, o: o, what: what, asks: ask}
	for i, round := range rounds {
		if err := m.round(ctx, i, round, has); err != nil {
			return nil, nil, err
		}
	}
	if m.first != nil {
		omitted = append(omitted, *m.first)
	}
	return m.samples, omitted, nil
}

// meter measures.
type meter struct {
	w       *rendezvous.World
	o       Options
	samples []rendezvous.Sample
	first   *rendezvous.Omission // the first one
	what    string               // is omitted where a test does not come about
	asks    func(*meter, context.Context, int, pair)
}

// round measures the pair of this rank, if it has one, and waits for all others.
func (m *meter) round(ctx context.Context, number int, round []pair, has []bool) error {
	for _, p := range round {
		if !has[p.a] || !has[p.b] {
			continue
		}
		switch m.w.Rank {
		case p.a:
			m.asks(m, ctx, number, p)
		case p.b:
			// Whoever asks says by waiting that it is over.
			over := serve(ctx, m.o.Port)
			defer over()
		}
	}
	return m.w.Wait()
}

// tests are what is measured between two nodes, in order, each on its port. Those
// by UDP need the rate that those by TCP showed.
const tests = 4

// serve answers tests until it is told that they are over.
func serve(ctx context.Context, port int) (over func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	for i := range tests {
		running.Go(func() {
			// One test each, and again if that failed and is tried once more.
			for ctx.Err() == nil {
				_, err := tool.Run(ctx, nil, Program, "-s", "-1", "-p", strconv.Itoa(port+i))
				if err != nil {
					select {
					case <-ctx.Done():
					case <-time.After(100 * time.Millisecond):
					}
				}
			}
		})
	}
	return func() {
		cancel()
		running.Wait()
	}
}

// ask makes the tests with the rank that serves.
func (m *meter) ask(ctx context.Context, round int, p pair) {
	for i, reverse := range []bool{false, true} {
		from, to := p.a, p.b
		if reverse {
			from, to = p.b, p.a
		}
		var t tcp
		if err := m.client(ctx, p, i, reverse, nil, func(out []byte) (err error) {
			t, err = readTCP(out)
			return err
		}); err != nil {
			m.fail("TCP", from, to, err)
			continue
		}
		s := m.sample("net.tcp.bandwidth", "B/s", round, from, to)
		s.Value, s.Min, s.Max, s.N, s.Seconds, s.Check = t.rate, t.low, t.high, t.parts, t.seconds, "bytes that came, as their receiver counted them"
		again := m.sample("net.tcp.again", "1", round, from, to)
		again.Value, again.Min, again.Max, again.Seconds, again.Check = t.again, t.again, t.again, t.seconds, "segments, as the sender's kernel counted them"
		m.samples = append(m.samples, s)
		if t.again >= 0 {
			m.samples = append(m.samples, again)
		}

		rate := min(mostRate, math.Floor(8*t.rate/2))
		var u udp
		if err := m.client(ctx, p, 2+i, reverse, udpFlags(rate), func(out []byte) (err error) {
			u, err = readUDP(out)
			return err
		}); err != nil {
			m.fail("UDP", from, to, err)
			continue
		}
		check := fmt.Sprintf("sent %g bits per second", rate)
		for _, f := range []struct {
			metric, unit string
			value        float64
		}{{"net.udp.bandwidth", "B/s", u.rate}, {"net.udp.loss", "1", u.loss}, {"net.udp.jitter", "s", u.jitter}} {
			if f.value == 0 && f.unit != "1" {
				continue // nothing came, or too little to tell: the loss says so
			}
			s := m.sample(f.metric, f.unit, round, from, to)
			s.Size, s.Value, s.Min, s.Max, s.Seconds, s.Check = datagram, f.value, f.value, f.value, u.seconds, check
			m.samples = append(m.samples, s)
		}
	}
}

// udpFlags are those of a test by UDP, at a rate in bits per second.
func udpFlags(rate float64) []string {
	return []string{"-u", "-l", strconv.Itoa(datagram), "-b", strconv.FormatFloat(rate, 'f', 0, 64)}
}

// sample begins one of the way between two ranks.
func (m *meter) sample(metric, unit string, round, from, to int) rendezvous.Sample {
	hosts := m.w.Hosts()
	return rendezvous.Sample{Metric: metric, Unit: unit, Host: hosts[from], Rank: from, Peer: hosts[to], PeerRank: &to, Round: &round, N: 1, OK: true}
}

// fail notes the first test that did not come about.
func (m *meter) fail(by string, from, to int, err error) {
	if m.first == nil {
		hosts := m.w.Hosts()
		m.first = &rendezvous.Omission{Host: hosts[m.w.Rank], What: m.what, Text: fmt.Sprintf("%s from %s to %s: %v", by, hosts[from], hosts[to], err)}
	}
}

// client makes one test, again while the server may not listen yet.
func (m *meter) client(ctx context.Context, p pair, test int, reverse bool, more []string, read func([]byte) error) error {
	seconds := int(max(1, math.Round(m.o.Seconds)))
	args := append([]string{
		"-c", m.w.Hosts()[p.b], "-p", strconv.Itoa(m.o.Port + test), "-t", strconv.Itoa(seconds), "-i", "0.2", "-J", "--connect-timeout", "2000",
	}, more...)
	if reverse {
		args = append(args, "-R")
	}
	until := time.Now().Add(answerWithin)
	for {
		one, cancel := context.WithTimeout(ctx, time.Duration(2*seconds)*time.Second+10*time.Second)
		out, failed := tool.Run(one, nil, Program, args...)
		cancel()
		err := read(out)
		if err == nil && failed == nil {
			return nil
		}
		if len(out) == 0 && failed != nil {
			err = failed // it says more than that there is no report
		}
		if err == nil {
			err = failed
		}
		if ctx.Err() != nil || !time.Now().Before(until) {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}
