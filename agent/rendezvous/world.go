package rendezvous

import (
	"cmp"
	"context"
	"crypto/subtle"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"github.com/muster-hpc/muster/wire"
)

// Options say who meets whom.
type Options struct {
	Rank, Size int
	Host       string // this node's name
	// At is HOST:PORT where they meet, and Hub reports whether that is here: which rank is
	// on which of the nodes that were named is up to mpirun.
	At  string
	Hub bool
	// Token is what the ranks of a launch know each other by: whoever else is on the
	// nodes must not be able to answer for one of them.
	Token string
}

// FromEnvironment reads from the variables of a launch which rank this is of how
// many. Without mpirun it is the only one.
func FromEnvironment(getenv func(string) string) (Options, error) {
	o := Options{Size: 1, Token: getenv(wire.MeetVariable)}
	size := cmp.Or(getenv("OMPI_COMM_WORLD_SIZE"), "1")
	rank := cmp.Or(getenv("OMPI_COMM_WORLD_RANK"), getenv("PMIX_RANK"), "0")
	var err error
	if o.Size, err = strconv.Atoi(size); err != nil || o.Size < 1 || o.Size > mostRanks {
		return o, fmt.Errorf("OMPI_COMM_WORLD_SIZE is %.32q, no number of ranks", size)
	}
	if o.Rank, err = strconv.Atoi(rank); err != nil || o.Rank < 0 || o.Rank >= o.Size {
		return o, fmt.Errorf("OMPI_COMM_WORLD_RANK is %.32q, none of %d ranks", rank, o.Size)
	}
	return o, nil
}

// Bounds of what ranks say to each other.
const (
	mostRanks = 1 << 16
	mostHello = 4 << 10
	mostFrame = wire.MaxLaunchInput + 1<<10
)

// meetWithin is how long the ranks wait for each other at the beginning: mpirun
// starts them one node after the other.
const meetWithin = time.Minute

// World is all ranks of a launch. Its methods are called by all of them, in the same
// order.
type World struct {
	Rank, Size int
	hub        bool
	hosts      []string
	conns      []net.Conn // of the hub: to each other rank; of others: one to the hub
	stop       func() bool
}

type hello struct {
	Token string `json:"token"`
	Rank  int    `json:"rank"`
	Host  string `json:"host"`
}

// Meet waits until all ranks are there. What is open ends with ctx.
func Meet(ctx context.Context, o Options) (*World, error) {
	w := &World{Rank: o.Rank, Size: o.Size, hub: o.Hub || o.Size == 1, stop: func() bool { return true }}
	if o.Size == 1 {
		w.hosts = []string{o.Host}
		return w, nil
	}
	if o.Token == "" {
		return nil, errors.New(wire.MeetVariable + " is not set: it is what the ranks of a launch know each other by")
	}
	within, cancel := context.WithTimeout(ctx, meetWithin)
	defer cancel()
	var err error
	if w.hub {
		err = w.gatherRanks(within, o)
	} else {
		err = w.goThere(within, o)
	}
	if err != nil {
		w.Close()
		return nil, err
	}
	w.stop = context.AfterFunc(ctx, w.hangUp)
	hosts, err := w.All([]byte(o.Host))
	if err != nil {
		w.Close()
		return nil, err
	}
	for _, h := range hosts {
		w.hosts = append(w.hosts, string(h))
	}
	return w, nil
}

// gatherRanks listens until every rank has come.
func (w *World) gatherRanks(ctx context.Context, o Options) error {
	_, port, err := net.SplitHostPort(o.At)
	if err != nil {
		return fmt.Errorf("where the ranks meet: %w", err)
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", ":"+port)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	defer func() { _ = l.Close() }()
	w.conns = make([]net.Conn, o.Size)
	type guest struct {
		conn net.Conn
		rank int
	}
	// A stranger who says nothing must not keep the others waiting.
	came := make(chan guest)
	over := make(chan struct{})
	defer close(over)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				if rank, ok := welcome(c, o); ok {
					select {
					case came <- guest{c, rank}:
						return
					case <-over:
					}
				}
				_ = c.Close()
			}()
		}
	}()
	for missing := o.Size - 1; missing > 0; {
		select {
		case g := <-came:
			if w.conns[g.rank] != nil {
				_ = g.conn.Close()
				return fmt.Errorf("rank %d came twice", g.rank)
			}
			w.conns[g.rank] = g.conn
			missing--
		case <-ctx.Done():
			return fmt.Errorf("%d of %d ranks did not come to %s: %w", missing, o.Size, o.At, ctx.Err())
		}
	}
	return nil
}

// welcome reports which rank is there; false if it is none.
func welcome(c net.Conn, o Options) (int, bool) {
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	b, err := receive(c, mostHello)
	_ = c.SetDeadline(time.Time{})
	var h hello
	if err != nil || json.Unmarshal(b, &h) != nil || subtle.ConstantTimeCompare([]byte(h.Token), []byte(o.Token)) != 1 {
		return 0, false
	}
	return h.Rank, h.Rank >= 0 && h.Rank < o.Size && h.Rank != o.Rank
}

// retryAfter is how long a rank waits before it knocks again.
const retryAfter = 50 * time.Millisecond

// goThere knocks until the hub listens.
func (w *World) goThere(ctx context.Context, o Options) error {
	said, err := json.Marshal(hello{Token: o.Token, Rank: o.Rank, Host: o.Host})
	if err != nil {
		return err
	}
	d := net.Dialer{Timeout: 5 * time.Second}
	for {
		c, err := d.DialContext(ctx, "tcp", o.At)
		if err == nil {
			w.conns = []net.Conn{c}
			return send(c, said)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("nobody answers where the ranks meet: %w", err)
		case <-time.After(retryAfter):
		}
	}
}

// Hosts are the nodes of the ranks, by rank.
func (w *World) Hosts() []string { return w.hosts }

// All gives every rank what each of them says, by rank.
func (w *World) All(mine []byte) ([][]byte, error) {
	all, err := w.Gather(mine)
	switch {
	case err != nil || w.Size == 1:
		return all, err
	case !w.hub:
		all = make([][]byte, w.Size)
		for r := range all {
			if all[r], err = receive(w.conns[0], mostFrame); err != nil {
				return nil, fmt.Errorf("the rank where all meet is gone: %w", err)
			}
		}
		return all, nil
	}
	for r, c := range w.conns {
		for _, b := range all {
			if c == nil {
				break // this one
			}
			if err := send(c, b); err != nil {
				return nil, w.lost(r, err)
			}
		}
	}
	return all, nil
}

// Gather gives the hub what each of them says, by rank; the others nothing.
func (w *World) Gather(mine []byte) ([][]byte, error) {
	if !w.hub {
		if err := send(w.conns[0], mine); err != nil {
			return nil, fmt.Errorf("the rank where all meet is gone: %w", err)
		}
		return nil, nil
	}
	all := make([][]byte, w.Size)
	all[w.Rank] = mine
	for r, c := range w.conns {
		if c == nil {
			continue // this one
		}
		b, err := receive(c, mostFrame)
		if err != nil {
			return nil, w.lost(r, err)
		}
		all[r] = b
	}
	return all, nil
}

// Wait waits until all ranks do.
func (w *World) Wait() error {
	if _, err := w.Gather(nil); err != nil || w.Size == 1 {
		return err
	}
	if !w.hub {
		if _, err := receive(w.conns[0], mostHello); err != nil {
			return fmt.Errorf("the rank where all meet is gone: %w", err)
		}
		return nil
	}
	for r, c := range w.conns {
		if c == nil {
			continue // this one
		}
		if err := send(c, nil); err != nil {
			return w.lost(r, err)
		}
	}
	return nil
}

func (w *World) lost(rank int, err error) error {
	of := ""
	if rank < len(w.hosts) {
		of = " on " + w.hosts[rank]
	}
	return fmt.Errorf("rank %d%s is gone: %w", rank, of, err)
}

// Close takes leave. Who still waits for this rank gets an error.
func (w *World) Close() {
	w.stop()
	w.hangUp()
}

func (w *World) hangUp() {
	for _, c := range w.conns {
		if c != nil {
			_ = c.Close()
		}
	}
}

// A frame is its length in four bytes, and so many bytes.
func send(c net.Conn, b []byte) error {
	if len(b) > mostFrame {
		return fmt.Errorf("%d bytes are too many at once", len(b))
	}
	frame := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(b)), uint32(len(b)))
	_, err := c.Write(append(frame, b...))
	return err
}

func receive(c io.Reader, most int) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if int64(n) > int64(most) {
		return nil, fmt.Errorf("%d bytes are too many at once", n)
	}
	b := make([]byte, n)
	_, err := io.ReadFull(c, b)
	return b, err
}
