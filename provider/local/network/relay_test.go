package network_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"

	"github.com/muster-hpc/muster/internal/connlimit"
	"github.com/muster-hpc/muster/provider/local/network"
)

// echo answers each line, and says goodbye when the other end has said all.
func echo(t *testing.T) string {
	t.Helper()
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				for in := bufio.NewScanner(c); in.Scan(); {
					fmt.Fprintf(c, "%s too\n", in.Text())
				}
				fmt.Fprintln(c, "all")
			}()
		}
	}()
	return ln.Addr().String()
}

// What is allowed passes both ways to its end; what is not any more ends; strangers get nothing.
func TestRelay(t *testing.T) {
	t.Parallel()
	target := echo(t)
	var allowed atomic.Bool
	allowed.Store(true)
	var asked atomic.Uint32
	r := &network.Relay{Log: slog.New(slog.DiscardHandler), To: func(_ context.Context, from netip.Addr, port uint16) (string, string, bool) {
		asked.Store(uint32(port))
		return target, "chem", allowed.Load() && from.IsLoopback()
	}}
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- r.Serve(ctx, connlimit.New(ln, connlimit.Limits{Total: 64, PerAddress: 64, PerName: 64}))
	}()
	dial := func() net.Conn {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	ask := func(c net.Conn, in *bufio.Reader) string {
		fmt.Fprintln(c, "one")
		line, _ := in.ReadString('\n')
		return line
	}

	c := dial()
	in := bufio.NewReader(c)
	if got := ask(c, in); got != "one too\n" {
		t.Errorf("got %q", got)
	}
	if int(asked.Load()) != ln.Addr().(*net.TCPAddr).Port {
		t.Errorf("asked about port %d", asked.Load())
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(in); string(rest) != "all\n" || err != nil {
		t.Errorf("the end is %q, %v", rest, err)
	}

	held := dial()
	heldIn := bufio.NewReader(held)
	if got := ask(held, heldIn); got != "one too\n" {
		t.Errorf("got %q", got)
	}
	r.Recheck(t.Context())
	if got := ask(held, heldIn); got != "one too\n" {
		t.Errorf("what is allowed still was ended: %q", got)
	}
	allowed.Store(false)
	r.Recheck(t.Context())
	if _, err := heldIn.ReadString('\n'); err == nil {
		t.Error("what is not allowed any more goes on")
	}
	if got, _ := io.ReadAll(dial()); len(got) > 0 {
		t.Errorf("a stranger got %q", got)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
