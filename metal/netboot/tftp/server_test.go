package tftp

import (
	"bytes"
	"context"
	"encoding/binary"
	"math/rand/v2"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

type rig struct {
	*Server
	mu    sync.Mutex
	notes []string
}

func (r *rig) said() string { r.mu.Lock(); defer r.mu.Unlock(); return strings.Join(r.notes, "\n") }

func content(n int) []byte {
	b := make([]byte, n)
	r := rand.New(rand.NewPCG(1, uint64(n)))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// serve runs a server on the loopback interface.
func serve(t *testing.T, change ...func(*Config)) *rig {
	t.Helper()
	free, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := free.LocalAddr().(*net.UDPAddr).Port
	free.Close()
	r := &rig{}
	c := Config{
		Interface: "lo", Address: netip.MustParseAddr("127.0.0.1"), Port: port,
		Files:    map[string][]byte{"small": content(100), "whole": content(1024), "big": content(700_001), "empty": {}},
		Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/24")},
		Note: func(_ netip.Addr, stage, text string) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.notes = append(r.notes, stage+" "+text)
		},
	}
	for _, f := range change {
		f(&c)
	}
	if r.Server, err = New(c); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	up, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- r.Serve(ctx, func() { close(up) }) }()
	select {
	case <-up:
	case err := <-done:
		t.Skip("cannot serve here: ", err)
	}
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(2 * time.Minute):
			t.Error("does not end")
		}
	})
	return r
}

// client is one that can lose packets. It acknowledges as RFC 7440 says.
type client struct {
	t       *testing.T
	conn    *net.UDPConn
	server  *net.UDPAddr
	block   int
	window  int
	lose    func(block int) bool // called for each packet of data
	options map[string]string    // of the OACK
	packets int
}

func (r *rig) client(t *testing.T, from string) *client {
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.ParseIP(from)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &client{t: t, conn: conn, block: 512, window: 1, lose: func(int) bool { return false }, options: map[string]string{},
		server: &net.UDPAddr{IP: net.ParseIP("127.0.0.1"), Port: r.Port}}
}

func (c *client) send(b []byte, to net.Addr) {
	if _, err := c.conn.WriteTo(b, to); err != nil {
		c.t.Fatal(err)
	}
}

// get fetches a file; on an error of the server it returns its text.
func (c *client) get(name string, options ...string) (data []byte, problem string) {
	c.t.Helper()
	c.send(rrq(name, options...), c.server)
	var peer net.Addr = c.server
	buf := make([]byte, 65536)
	have, sinceAck, gap := 0, 0, false
	ack := func() {
		b := binary.BigEndian.AppendUint16([]byte{0, opAck}, uint16(have))
		c.send(b, peer)
		sinceAck = 0
	}
	for quiet := 0; ; {
		c.conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		n, from, err := c.conn.ReadFromUDP(buf)
		if err != nil {
			if quiet++; quiet > 40 {
				return data, "nothing heard"
			}
			if gap = false; peer != net.Addr(c.server) {
				ack()
			}
			continue
		}
		quiet = 0
		peer = from
		switch buf[1] {
		case opError:
			return data, string(buf[4 : n-1])
		case opOACK:
			words := strings.Split(strings.TrimSuffix(string(buf[2:n]), "\x00"), "\x00")
			for i := 0; i+1 < len(words); i += 2 {
				c.options[words[i]] = words[i+1]
			}
			if s := c.options["blksize"]; s != "" {
				c.block, _ = strconv.Atoi(s)
			}
			if s := c.options["windowsize"]; s != "" {
				c.window, _ = strconv.Atoi(s)
			}
			ack()
		case opData:
			number := binary.BigEndian.Uint16(buf[2:])
			c.packets++
			if c.lose(c.packets) {
				continue
			}
			if number != uint16(have+1) {
				if !gap { // or a copy; said once, as RFC 7440 has it
					ack()
				}
				gap = true
				continue
			}
			gap = false
			have++
			data = append(data, buf[4:n]...)
			if sinceAck++; sinceAck == c.window || n-4 < c.block {
				ack()
			}
			if n-4 < c.block {
				return data, ""
			}
		}
	}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	r := serve(t)
	for _, name := range []string{"small", "whole", "big", "empty"} {
		for _, options := range [][]string{nil, {"blksize", "1024"}, {"blksize", "512", "windowsize", "4"}, {"tsize", "0", "blksize", "60000", "windowsize", "1000", "timeout", "2"}} {
			c := r.client(t, "127.0.0.1")
			got, problem := c.get(name, options...)
			if problem != "" || !bytes.Equal(got, r.Files[name]) {
				t.Errorf("%s %v: %d bytes, %s", name, options, len(got), problem)
			}
			if len(options) > 4 && (c.options["windowsize"] != "64" || c.options["tsize"] != strconv.Itoa(len(r.Files[name])) || c.options["timeout"] != "2" || c.options["blksize"] != "60000") {
				t.Errorf("granted %v", c.options)
			}
		}
	}
	if !strings.Contains(r.said(), "tftp sent small, 100 bytes") {
		t.Errorf("operator is told %q", r.said())
	}
}

// TestMoreBlocksThanNumbers: block numbers have 16 bits, this file has more blocks.
func TestMoreBlocksThanNumbers(t *testing.T) {
	t.Parallel()
	r := serve(t)
	c := r.client(t, "127.0.0.1")
	got, problem := c.get("big", "blksize", "8", "windowsize", "64")
	if problem != "" || !bytes.Equal(got, r.Files["big"]) || len(got)/8 < 65536 {
		t.Errorf("%d bytes, %s", len(got), problem)
	}
}

func TestLostPackets(t *testing.T) {
	t.Parallel()
	r := serve(t)
	for _, window := range []int{1, 2, 16} {
		t.Run(strconv.Itoa(window), func(t *testing.T) {
			t.Parallel()
			c := r.client(t, "127.0.0.1")
			c.lose = func(n int) bool { return n%97 == 3 && n < 500 }
			began := time.Now()
			got, problem := c.get("big", "blksize", "1400", "windowsize", strconv.Itoa(window))
			if problem != "" || !bytes.Equal(got, r.Files["big"]) {
				t.Errorf("%d bytes, %s", len(got), problem)
			}
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("took %v", took)
			}
			if sent := c.packets; sent > 501+20*window {
				t.Errorf("%d packets for 501 blocks: copies breed copies", sent)
			}
		})
	}
}

func TestWhatIsRefused(t *testing.T) {
	t.Parallel()
	r := serve(t)
	for _, name := range []string{"nothing", "../../../etc/passwd", "/etc/passwd", "", "big/"} {
		if got, problem := r.client(t, "127.0.0.1").get(name); problem == "" || len(got) > 0 {
			t.Errorf("%q: %d bytes", name, len(got))
		}
	}
	if !strings.Contains(r.said(), `no file "../../../etc/passwd"`) {
		t.Errorf("operator is told %q", r.said())
	}
	c := r.client(t, "127.0.0.1")
	c.send(append([]byte{0, 2}, rrq("small")[2:]...), c.server)
	buf := make([]byte, 600)
	c.conn.SetReadDeadline(time.Now().Add(time.Minute))
	if n, err := c.conn.Read(buf); err != nil || buf[1] != opError || !strings.Contains(string(buf[:n]), "only reading") {
		t.Errorf("a write: %v %q", err, buf[:n])
	}
	// A network that was not given hears nothing at all.
	if got, problem := r.client(t, "127.0.9.9").get("small"); problem != "nothing heard" {
		t.Errorf("answered: %q, %q", got, problem)
	}
	if r.Refused() == 0 {
		t.Error("not counted")
	}
}

// TestMoreThanAtOnce: requests beyond the limit wait and are served in the end.
func TestMoreThanAtOnce(t *testing.T) {
	t.Parallel()
	r := serve(t, func(c *Config) { c.Transfers = 2 })
	slow := make([]*client, 2)
	for i := range slow {
		slow[i] = r.client(t, "127.0.0.1")
		slow[i].send(rrq("big"), slow[i].server) // and never a word again
	}
	time.Sleep(50 * time.Millisecond)
	if _, problem := r.client(t, "127.0.0.2").get("small"); problem != "nothing heard" {
		t.Fatalf("a third transfer: %s", problem)
	}
	for _, c := range slow {
		c.conn.Close() // the next packet finds nobody, and the transfer ends
	}
	for range 10 {
		if got, _ := r.client(t, "127.0.0.2").get("small"); len(got) == 100 {
			return
		}
	}
	t.Error("never served")
}

func TestAClientThatFallsSilent(t *testing.T) {
	t.Parallel()
	r := serve(t)
	c := r.client(t, "127.0.0.1")
	c.send(rrq("big", "timeout", "1"), c.server)
	buf := make([]byte, 600)
	if _, err := c.conn.Read(buf); err != nil || buf[1] != opOACK {
		t.Fatal(err, buf[:4])
	}
	c.conn.Close()
	for range 100 {
		if strings.Contains(r.said(), "stopped sending big") {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Error("the transfer does not end")
}
