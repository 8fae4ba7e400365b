package main

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestLease has an agent with a short lease heard again and again.
func TestLease(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for name, value := range map[string]string{"WATCHDOG_USEC": "40000", "NOTIFY_SOCKET": socket, "WATCHDOG_PID": "1"} {
		t.Setenv(name, value)
	}
	l, ok := takeLease()
	if !ok || l.every != 10*time.Millisecond || os.Getenv("NOTIFY_SOCKET") != "" {
		t.Fatalf("the lease is %+v, %v", l, ok)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { l.keep(ctx); close(done) }()
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	for range 3 {
		b := make([]byte, 64)
		if n, err := conn.Read(b); err != nil || string(b[:n]) != "WATCHDOG=1" {
			t.Fatalf("systemd hears %q, %v", b[:n], err)
		}
	}
	cancel()
	<-done

	if l, ok := takeLease(); ok {
		t.Errorf("an agent that nobody watches has a lease: %+v", l)
	}
}
