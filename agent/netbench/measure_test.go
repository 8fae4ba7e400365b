package netbench_test

import (
	"context"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster/agent/netbench"
	"github.com/muster-hpc/muster/agent/rendezvous"
	"github.com/muster-hpc/muster/agent/tool"
)

// freePorts finds so many free ports, one after the other.
func freePorts(t *testing.T, n int) int {
	t.Helper()
	for first := 20000 + time.Now().Nanosecond()%10000; first < 32000; first += n {
		free := true
		for p := first; p < first+n && free; p++ {
			l, err := net.ListenTCP("tcp", &net.TCPAddr{Port: p})
			if free = err == nil; free {
				l.Close()
			}
		}
		if free {
			return first
		}
	}
	t.Fatal("no free ports")
	return 0
}

// world has ranks of one process do something.
func world(t *testing.T, n int, port int, do func(context.Context, *rendezvous.World) error) []error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	at := net.JoinHostPort("localhost", strconv.Itoa(port))
	errs := make([]error, n)
	done := make(chan int)
	for r := range n {
		go func() {
			defer func() { done <- r }()
			w, err := rendezvous.Meet(ctx, rendezvous.Options{Rank: r, Size: n, Hub: r == 1, Host: "localhost", At: at, Token: "secret"})
			if err == nil {
				err = do(ctx, w)
				w.Close()
			}
			errs[r] = err
		}()
	}
	for range n {
		<-done
	}
	return errs
}

// The real program measures a pair in both directions, and what a rank without a
// partner does is wait.
func TestMeasure(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("sends gigabytes: not with -short")
	}
	if !tool.There(netbench.Program) {
		t.Skip("no iperf3: scripts/setup test installs it")
	}
	port := freePorts(t, 5)
	found := make([][]rendezvous.Sample, 3)
	for r, err := range world(t, 3, port, func(ctx context.Context, w *rendezvous.World) error {
		samples, omitted, err := netbench.Measure(ctx, w, netbench.Options{Seconds: 1, Rounds: "0-2/1-0", Port: port + 1})
		if len(omitted) > 0 {
			t.Errorf("%+v", omitted)
		}
		found[w.Rank] = samples
		return err
	}) {
		if err != nil {
			t.Fatalf("rank %d: %v", r, err)
		}
	}
	if len(found[2]) > 0 {
		t.Errorf("who answers has figures, too: %+v", found[2])
	}
	for asks, peer := range map[int]int{0: 2, 1: 0} {
		ways := map[int][]string{}
		for _, s := range found[asks] {
			if !s.OK || s.Min > s.Value || s.Value > s.Max || s.Value < 0 || s.PeerRank == nil || s.Rank+*s.PeerRank != asks+peer || *s.Round != map[int]int{0: 0, 1: 1}[asks] {
				t.Errorf("%+v", s)
			}
			ways[s.Rank] = append(ways[s.Rank], s.Metric)
		}
		for _, from := range []int{asks, peer} {
			for _, want := range []string{"net.tcp.bandwidth", "net.tcp.again", "net.udp.bandwidth", "net.udp.loss"} {
				if !slices.Contains(ways[from], want) {
					t.Errorf("%d asks %d: no %s from %d: %v", asks, peer, want, from, ways)
				}
			}
		}
	}
}

// The real program measures by connections and by rates, until datagrams are lost or no
// more can be sent.
func TestSweep(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("sends gigabytes: not with -short")
	}
	if !tool.There(netbench.Program) {
		t.Skip("no iperf3: scripts/setup test installs it")
	}
	port := freePorts(t, 5)
	found := make([][]rendezvous.Sample, 2)
	for r, err := range world(t, 2, port, func(ctx context.Context, w *rendezvous.World) error {
		samples, omitted, err := netbench.Sweep(ctx, w, netbench.Options{Seconds: 1, Rounds: "0-1", Port: port + 1})
		if len(omitted) > 0 {
			t.Errorf("%+v", omitted)
		}
		found[w.Rank] = samples
		return err
	}) {
		if err != nil {
			t.Fatalf("rank %d: %v", r, err)
		}
	}
	var streams []int
	offered := map[string][]float64{}
	for _, s := range found[0] {
		if !s.OK || s.Min > s.Value || s.Value > s.Max || s.Rank != 0 || *s.PeerRank != 1 {
			t.Errorf("%+v", s)
		}
		switch s.Metric {
		case "streams.tcp.bandwidth":
			streams = append(streams, s.Streams)
		case "streams.udp.bandwidth", "streams.udp.loss":
			offered[s.Metric] = append(offered[s.Metric], s.Offered)
		}
	}
	steps := offered["streams.udp.loss"]
	if !slices.Equal(streams, []int{1, 2, 4, 8}) || len(steps) < 2 || !slices.IsSorted(steps) || len(offered["streams.udp.bandwidth"]) != len(steps) || len(found[1]) > 0 {
		t.Errorf("connections %v, rates %v, of who answers %v", streams, offered, found[1])
	}
}

// Rounds that are wrong are refused before anybody measures. It is over before
// TestMeasure, which is parallel as TestSweep is, goes on: that one would otherwise take the port that
// this one found free.
func TestMeasureRefuses(t *testing.T) {
	for _, err := range world(t, 2, freePorts(t, 1), func(ctx context.Context, w *rendezvous.World) error {
		_, _, err := netbench.Measure(ctx, w, netbench.Options{Rounds: "0-2"})
		return err
	}) {
		if err == nil || !strings.Contains(err.Error(), "--rounds") {
			t.Error(err)
		}
	}
}
