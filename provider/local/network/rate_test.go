package network_test

import (
	"context"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/muster-hpc/muster/provider/local/network"
)

// A link is held to its rate each way, whatever the machine does inside, also where one sends
// to several; and nothing is left of that once the machine is gone.
func TestRate(t *testing.T) {
	root(t)
	r := rack(t, newNS(t))
	const rate = 200e6
	if err := r.AddBridge(0, "c-x"); err != nil {
		t.Fatal(err)
	}
	var ns []*os.File
	for i := range 3 {
		n := newNS(t)
		if err := r.PlugMachine(network.Plug{Machine: i, Bridge: 0, MTU: 9000, Speed: rate}, n); err != nil {
			t.Fatal(err)
		}
		inside(t, n, func() error { return address("msg0", []string{"10.9.0.1/24", "10.9.0.2/24", "10.9.0.3/24"}[i]) })
		if got, err := r.Rate(i); err != nil || got != rate {
			t.Fatalf("machine %d: %d %v", i, got, err)
		}
		ns = append(ns, n)
	}
	for name, c := range map[string][][2]int{
		"one to one": {{0, 1}}, "one to two": {{0, 1}, {0, 2}}, "two to one": {{1, 0}, {2, 0}},
	} {
		if got := sent(t, ns, c); got > rate*1.1 || got == 0 {
			t.Errorf("%s: %.0f b/s", name, got)
		} else {
			t.Logf("%s: %.0f Mb/s", name, got/1e6)
		}
	}
	for i := range 3 {
		if err := r.RemoveMachine(i); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := r.Machines(); err != nil || len(left) > 0 {
		t.Errorf("%v %v", left, err)
	}
	n := newNS(t)
	if err := r.PlugMachine(network.Plug{Machine: 0, Bridge: 0}, n); err != nil {
		t.Fatal(err)
	}
	if got, err := r.Rate(0); got != 0 || err != nil {
		t.Errorf("still held to %d: %v", got, err)
	}
}

// sent is how many bits a second arrive from some machines at others, all at once. Machine i has the
// address 10.9.0.(i+1).
func sent(t *testing.T, ns []*os.File, pairs [][2]int) float64 {
	t.Helper()
	const lasts = 1500 * time.Millisecond
	var total int64
	var mu sync.Mutex
	var wg sync.WaitGroup
	var began time.Time
	for _, p := range pairs {
		var ln net.Listener
		inside(t, ns[p[1]], func() (err error) {
			ln, err = (&net.ListenConfig{}).Listen(context.WithoutCancel(t.Context()), "tcp4", "0.0.0.0:0")
			return err
		})
		to := (&net.TCPAddr{IP: net.IPv4(10, 9, 0, byte(p[1]+1)), Port: ln.Addr().(*net.TCPAddr).Port}).String()
		var c net.Conn
		inside(t, ns[p[0]], func() (err error) {
			c, err = (&net.Dialer{Timeout: time.Minute}).DialContext(context.WithoutCancel(t.Context()), "tcp4", to)
			return err
		})
		took, err := ln.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if began.IsZero() {
			began = time.Now()
		}
		wg.Go(func() {
			n, _ := io.Copy(io.Discard, took)
			mu.Lock()
			total += n
			mu.Unlock()
			_ = took.Close()
		})
		go func() {
			piece := make([]byte, 1<<18)
			for time.Since(began) < lasts {
				if _, err := c.Write(piece); err != nil {
					break
				}
			}
			_ = c.Close()
			_ = ln.Close()
		}()
	}
	wg.Wait()
	return float64(total) * 8 / time.Since(began).Seconds()
}
