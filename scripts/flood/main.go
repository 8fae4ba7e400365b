// Command flood is a crowd of strangers for scripts/bench.d/connections: it opens
// connections to an API on loopback from many addresses, shows no token, and stays. What
// the server closes it opens again.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"time"
)

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	to := flag.String("to", "", "ADDRESS:PORT of an API over TLS on loopback")
	count := flag.Int64("count", 50_000, "connections to open in all")
	sources := flag.Int("sources", 32, "addresses to come from, from 127.0.1.1 on")
	hold := flag.Int("hold", 8000, "connections to have at once, at most")
	flag.Parse()
	host, _, err := net.SplitHostPort(*to)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
		return errors.New("flood: -to ADDRESS:PORT must be on loopback")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	c := crowd{to: *to, left: *count}
	var all sync.WaitGroup
	for i := range *hold {
		from := &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+i%*sources))}
		all.Go(func() { c.stay(ctx, from, i%2 == 0) })
	}
	tell := func() {
		fmt.Printf("opened %d refused %d held %d\n", c.opened.Load(), c.refused.Load(), c.held.Load())
	}
	go func() {
		for range time.Tick(time.Second) {
			tell()
		}
	}()
	all.Wait()
	tell()
	return nil
}

type crowd struct {
	to                    string
	left                  int64
	opened, refused, held atomic.Int64
}

// stay opens one connection after the other until all are opened, and keeps the last.
func (c *crowd) stay(ctx context.Context, from net.Addr, ask bool) {
	for ctx.Err() == nil && atomic.AddInt64(&c.left, -1) >= 0 {
		d := net.Dialer{LocalAddr: from, Timeout: 10 * time.Second}
		raw, err := d.DialContext(ctx, "tcp4", c.to)
		if err != nil {
			c.refused.Add(1)
			continue
		}
		c.opened.Add(1)
		c.held.Add(1)
		c.idle(ctx, raw, ask)
		c.held.Add(-1)
	}
}

// idle does what a stranger can, and waits until the server has enough of it.
func (c *crowd) idle(ctx context.Context, raw net.Conn, ask bool) {
	defer func() { _ = raw.Close() }()
	end := context.AfterFunc(ctx, func() { _ = raw.Close() })
	defer end()
	if ask { // the others do not even begin TLS
		conn := tls.Client(raw, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // a stranger does not care
		if conn.HandshakeContext(ctx) != nil {
			return
		}
		if _, err := io.WriteString(conn, "GET /v1/server HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, conn)
		return
	}
	_, _ = io.Copy(io.Discard, raw)
}
