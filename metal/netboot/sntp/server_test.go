package sntp

import (
	"context"
	"encoding/binary"
	"net"
	"net/netip"
	"testing"
	"time"
)

func ask(t *testing.T, to *net.UDPConn, question []byte) []byte {
	t.Helper()
	if _, err := to.Write(question); err != nil {
		t.Fatal(err)
	}
	if err := to.SetReadDeadline(time.Now().Add(300 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 512)
	n, err := to.Read(b)
	if err != nil {
		return nil
	}
	return b[:n]
}

func serve(t *testing.T, networks ...string) (*Server, *net.UDPConn) {
	t.Helper()
	free, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	at := free.LocalAddr().(*net.UDPAddr)
	_ = free.Close()
	c := Config{Interface: "lo", Address: netip.MustParseAddr("127.0.0.1"), Port: at.Port}
	for _, n := range networks {
		c.Networks = append(c.Networks, netip.MustParsePrefix(n))
	}
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- s.Serve(ctx, func() { close(ready) }) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	select {
	case <-ready:
	case err := <-done:
		done <- nil
		t.Skipf("cannot serve here: %v", err)
	}
	client, err := net.DialUDP("udp4", nil, at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return s, client
}

func TestServe(t *testing.T) {
	t.Parallel()
	s, client := serve(t, "127.0.0.0/8")
	q := make([]byte, packetSize)
	q[0], q[2] = 4<<3|modeClient, 6
	copy(q[40:], "12345678")
	before := timestamp(time.Now())
	a := ask(t, client, q)
	after := timestamp(time.Now())
	if len(a) != packetSize || a[0] != 4<<3|modeServer || a[1] < 1 || a[1] > 15 || a[2] != 6 || string(a[24:32]) != "12345678" {
		t.Fatalf("answer: %x", a)
	}
	received, sent := binary.BigEndian.Uint64(a[32:]), binary.BigEndian.Uint64(a[40:])
	if received < before || sent < received || after < sent {
		t.Errorf("asked at %x, received at %x, sent at %x, read at %x", before, received, sent, after)
	}
	for _, bad := range [][]byte{{}, q[:47], append([]byte{4<<3 | modeServer}, q[1:]...), append([]byte{7<<3 | modeClient}, q[1:]...)} {
		if a := ask(t, client, bad); a != nil {
			t.Errorf("%x is answered: %x", bad, a)
		}
	}
	if s.Refused() < 3 {
		t.Errorf("%d refused", s.Refused())
	}
}

func TestStrangersAreNotAnswered(t *testing.T) {
	t.Parallel()
	s, client := serve(t, "10.0.0.0/8")
	q := make([]byte, packetSize)
	q[0] = 4<<3 | modeClient
	if a := ask(t, client, q); a != nil || s.Refused() != 1 {
		t.Errorf("%x, %d refused", a, s.Refused())
	}
}

// A year, and half a second.
func TestTimestamp(t *testing.T) {
	t.Parallel()
	at := time.Date(1970, 1, 1, 0, 0, 0, 5e8, time.UTC)
	if got := timestamp(at); got != 2208988800<<32|1<<31 {
		t.Errorf("%x", got)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(make([]byte, packetSize))
	f.Add([]byte{0x1b})
	f.Fuzz(func(t *testing.T, b []byte) {
		q, err := parse(b)
		if err == nil && len(answer(q, 4, time.Now(), time.Now())) > len(b) {
			t.Fatal("an answer longer than its question")
		}
	})
}
