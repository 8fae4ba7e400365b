package netbench

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
)

// report is what a client of iperf3 prints, as far as it is used.
type report struct {
	Error string `json:"error"`
	Start struct {
		MSS float64 `json:"tcp_mss_default"`
	} `json:"start"`
	Intervals []struct {
		Sum flow `json:"sum"`
	} `json:"intervals"`
	End struct {
		Streams []struct {
			UDP *flow `json:"udp"`
		} `json:"streams"`
		Sent     *flow `json:"sum_sent"`
		Received *flow `json:"sum_received"`
	} `json:"end"`
}

// flow is what went one way.
type flow struct {
	Seconds float64 `json:"seconds"`
	Bytes   float64 `json:"bytes"`
	Bits    float64 `json:"bits_per_second"`
	Again   float64 `json:"retransmits"` // segments
	Jitter  float64 `json:"jitter_ms"`
	Lost    float64 `json:"lost_packets"`
	Packets float64 `json:"packets"`
}

// tcp is what a test by TCP showed.
type tcp struct {
	rate, low, high float64 // B/s that came, and the extremes of parts of the test
	parts           int
	seconds         float64
	// again is the share of segments that were sent again; negative: that cannot be
	// told.
	again float64
}

// udp is what a test by UDP showed.
type udp struct {
	rate    float64 // B/s that came
	seconds float64
	jitter  float64 // s; 0: it cannot be told
	loss    float64 // the share of datagrams that did not come
	packets int
}

// mostParts of a test are looked at.
const mostParts = 1000

func decode(out []byte) (*report, error) {
	var r report
	if err := json.Unmarshal(out, &r); err != nil {
		return nil, errors.New("the report of iperf3 cannot be read")
	}
	if r.Error != "" {
		return nil, errors.New("iperf3: " + clip(r.Error))
	}
	if r.End.Sent == nil || r.End.Received == nil {
		return nil, errors.New("the report of iperf3 has no sums")
	}
	return &r, nil
}

// readTCP reads the report of a test by TCP.
func readTCP(out []byte) (tcp, error) {
	r, err := decode(out)
	if err != nil {
		return tcp{}, err
	}
	t := tcp{rate: r.End.Received.Bits / 8, seconds: r.End.Received.Seconds}
	if !believable(t.rate) || !(t.seconds > 0 && t.seconds < 1e6) {
		return tcp{}, fmt.Errorf("iperf3 says %g bytes per second over %g s", t.rate, t.seconds)
	}
	t.low, t.high, t.again = t.rate, t.rate, -1
	for _, i := range r.Intervals[:min(len(r.Intervals), mostParts)] {
		if v := i.Sum.Bits / 8; believable(v) {
			t.low, t.high = min(t.low, v), max(t.high, v)
			t.parts++
		}
	}
	t.parts = max(1, t.parts)
	if segments := r.End.Sent.Bytes / r.Start.MSS; segments > 0 && !math.IsInf(segments, 0) {
		t.again = share(r.End.Sent.Again / segments)
	}
	return t, nil
}

// readUDP reads the report of a test by UDP.
func readUDP(out []byte) (udp, error) {
	r, err := decode(out)
	if err != nil {
		return udp{}, err
	}
	if len(r.End.Streams) != 1 || r.End.Streams[0].UDP == nil {
		return udp{}, errors.New("the report of iperf3 is not of one stream by UDP")
	}
	// The sums of sender and receiver are made differently from release to release;
	// the stream has the receiver's word on what was lost, and the sender's on what
	// was sent.
	s := *r.End.Streams[0].UDP
	if !believable(s.Bytes) || !(s.Seconds > 0 && s.Seconds < 1e6) || !(s.Packets >= 1 && s.Packets < 1e12) {
		return udp{}, fmt.Errorf("iperf3 says %g datagrams of %g bytes in %g s", s.Packets, s.Bytes, s.Seconds)
	}
	u := udp{seconds: s.Seconds, loss: share(s.Lost / s.Packets), packets: int(s.Packets)}
	u.rate = s.Bytes * (1 - u.loss) / s.Seconds
	if j := s.Jitter / 1000; j > 0 && j < 1e3 {
		u.jitter = j
	}
	return u, nil
}

// share is v as a share.
func share(v float64) float64 {
	if !(v > 0) { // NaN, too
		return 0
	}
	return min(v, 1)
}

// believable reports whether an amount is one. The server has bounds of its own.
func believable(v float64) bool { return v > 0 && v < 1e14 }

// clip keeps a message short.
func clip(s string) string {
	const enough = 150
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "?")), " ")
	return strings.ToValidUTF8(s[:min(len(s), enough)], "")
}
