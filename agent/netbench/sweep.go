package netbench

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"github.com/muster-hpc/muster/agent/rendezvous"
)

// Sweep measures the pairs of this rank, round by round, from the first of a pair to the
// second: by how many connections send at once, and by how many datagrams a second are
// sent, more from step to step until some are lost. What could not be measured is an
// omission, as with [Measure].
func Sweep(ctx context.Context, w *rendezvous.World, o Options) ([]rendezvous.Sample, []rendezvous.Omission, error) {
	return measure(ctx, w, o, "streams", (*meter).sweep)
}

// streams are how many connections there are at once.
func streams() []int { return []int{1, 2, 4, 8} }

// Steps of datagrams end where so many are lost, or where the sender sends so much less
// than it was asked to, in several steps in a row: a busy processor loses some now and
// then.
const (
	lost      = 0.01
	fallsOff  = 0.8
	inARow    = 2
	mostSteps = 10
)

// steps are the rates that datagrams are sent at, in bits per second, where one
// connection by TCP reaches so many bytes per second. They are powers of two, so that
// those of different pairs are the same.
func steps(reached float64) []float64 {
	const bits, mega = 8, 1e6
	first := max(0, math.Floor(math.Log2(bits*reached/32/mega)))
	last := max(first, math.Floor(math.Log2(4*bits*reached/mega)))
	var list []float64
	for k := first; k <= last && len(list) < mostSteps; k++ {
		list = append(list, mega*math.Exp2(k))
	}
	return list
}

// over reports whether this is more than can be sent, or than comes.
func (u udp) over(rate float64) bool {
	sent := 8 * datagram * float64(u.packets) / u.seconds
	return u.loss >= lost || sent < fallsOff*rate
}

// sweep makes the tests with the rank that serves.
func (m *meter) sweep(ctx context.Context, round int, p pair) {
	test := 0
	next := func() int { // servers come back one after the other
		test++
		return test % tests
	}
	reached := 0.0
	for _, n := range streams() {
		var t tcp
		if err := m.client(ctx, p, next(), false, []string{"-P", strconv.Itoa(n)}, func(out []byte) (err error) {
			t, err = readTCP(out)
			return err
		}); err != nil {
			m.fail(fmt.Sprintf("TCP by %d at once", n), p.a, p.b, err)
			return
		}
		if n == 1 {
			reached = t.rate
		}
		s := m.sample("streams.tcp.bandwidth", "B/s", round, p.a, p.b)
		s.Streams, s.Value, s.Min, s.Max, s.N, s.Seconds, s.Check = n, t.rate, t.low, t.high, t.parts, t.seconds, "bytes that came, as their receiver counted them"
		m.samples = append(m.samples, s)
		if t.again >= 0 {
			s := m.sample("streams.tcp.again", "1", round, p.a, p.b)
			s.Streams, s.Value, s.Min, s.Max, s.Seconds, s.Check = n, t.again, t.again, t.again, t.seconds, "segments, as the sender's kernel counted them"
			m.samples = append(m.samples, s)
		}
	}
	row := 0
	for _, rate := range steps(reached) {
		var u udp
		if err := m.client(ctx, p, next(), false, udpFlags(rate), func(out []byte) (err error) {
			u, err = readUDP(out)
			return err
		}); err != nil {
			m.fail(fmt.Sprintf("UDP at %g bits per second", rate), p.a, p.b, err)
			return
		}
		check := fmt.Sprintf("%d datagrams sent", u.packets)
		for _, f := range []struct {
			metric, unit string
			value        float64
		}{{"streams.udp.bandwidth", "B/s", u.rate}, {"streams.udp.loss", "1", u.loss}, {"streams.udp.jitter", "s", u.jitter}} {
			if f.value == 0 && f.unit != "1" {
				continue // nothing came, or too little to tell: the loss says so
			}
			s := m.sample(f.metric, f.unit, round, p.a, p.b)
			s.Size, s.Offered, s.Value, s.Min, s.Max, s.Seconds, s.Check = datagram, rate/8, f.value, f.value, f.value, u.seconds, check
			m.samples = append(m.samples, s)
		}
		if row++; !u.over(rate) {
			row = 0
		}
		if row == inARow {
			return
		}
	}
}
