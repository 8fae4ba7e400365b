package main

import (
	"context"
	"net"
	"os"
	"strconv"
	"time"
)

// lease is what systemd gives a service that it watches: it has to be heard within that
// time, or it is started anew. An agent that was stopped would be silent for ever otherwise.
type lease struct {
	socket string
	every  time.Duration
}

// takeLease reads it from the environment, and removes it from there: programs that the
// agent starts have none. ok: there is one.
func takeLease() (l lease, ok bool) {
	usec, err := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64)
	l = lease{socket: os.Getenv("NOTIFY_SOCKET"), every: time.Duration(usec) * time.Microsecond / 4}
	for _, name := range []string{"WATCHDOG_USEC", "WATCHDOG_PID", "NOTIFY_SOCKET"} {
		_ = os.Unsetenv(name)
	}
	return l, err == nil && l.every > 0 && l.socket != ""
}

// keep has systemd hear of the agent until ctx ends. What cannot be said now is said the
// next time.
func (l lease) keep(ctx context.Context) {
	tick := time.NewTicker(l.every)
	defer tick.Stop()
	for {
		l.say()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (l lease) say() {
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: l.socket, Net: "unixgram"})
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetWriteDeadline(time.Now().Add(l.every)) // a stopped systemd reads nothing
	_, _ = conn.Write([]byte("WATCHDOG=1"))
}
