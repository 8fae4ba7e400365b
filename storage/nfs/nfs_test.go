package nfs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// nfsClient speaks as much of NFSv4.1 (RFC 8881) as it takes to try doors, and
// sends what no kernel would.
type nfsClient struct {
	conn     net.Conn
	xid      uint32
	session  []byte
	client   uint64
	sequence uint32
	uid, gid uint32
}

// nfsStatus is an error of the protocol (nfsstat4).
type nfsStatus uint32

func (s nfsStatus) Error() string { return fmt.Sprintf("NFS status %d", uint32(s)) }

// Those that tests name.
const (
	nfsNoEntry  = nfsStatus(2)
	nfsAccess   = nfsStatus(13)
	nfsReadOnly = nfsStatus(30)
)

type xdr []byte

func (x *xdr) u32(v ...uint32) *xdr {
	for _, n := range v {
		*x = binary.BigEndian.AppendUint32(*x, n)
	}
	return x
}

func (x *xdr) u64(v uint64) *xdr { *x = binary.BigEndian.AppendUint64(*x, v); return x }

func (x *xdr) fixed(b []byte) *xdr { *x = append(*x, b...); return x }

func (x *xdr) opaque(b []byte) *xdr {
	x.u32(uint32(len(b))).fixed(b)
	for len(*x)%4 != 0 {
		*x = append(*x, 0)
	}
	return x
}

// take cuts from what came.
func (x *xdr) take(n int) []byte {
	if n > len(*x) {
		panic(io.ErrUnexpectedEOF)
	}
	b := (*x)[:n]
	*x = (*x)[n:]
	return b
}

func (x *xdr) n() uint32 { return binary.BigEndian.Uint32(x.take(4)) }

func (x *xdr) bytes() []byte {
	n := int(x.n())
	b := x.take(n)
	x.take((4 - n%4) % 4)
	return b
}

// dialNFS opens a session from an address, and from a port of root unless low is
// false.
func dialNFS(server netip.AddrPort, from string, low bool, uid uint32) (*nfsClient, error) {
	c := &nfsClient{uid: uid, gid: uid}
	for port := 600 + int(time.Now().UnixNano()/1000%300); ; port++ {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: 5 * time.Second}
		if low {
			d.LocalAddr = &net.TCPAddr{IP: net.ParseIP(from), Port: port}
		}
		conn, err := d.Dial("tcp", server.String())
		if low && (errors.Is(err, unix.EADDRINUSE) || errors.Is(err, unix.EADDRNOTAVAIL)) && port < 1023 {
			continue
		}
		if err != nil {
			return nil, err
		}
		c.conn = conn
		break
	}
	_ = c.conn.SetDeadline(time.Now().Add(60 * time.Second))
	var id xdr
	id.u32(42).u64(uint64(time.Now().UnixNano())).opaque(fmt.Append(nil, "test ", from, " ", time.Now().UnixNano())).u32(0, 0, 0)
	r, err := c.compound(id, 1)
	if err != nil {
		return nil, err
	}
	c.client = binary.BigEndian.Uint64(r.take(8))
	var s xdr
	s.u32(43).u64(c.client).u32(r.n(), 0)
	for range 2 {
		s.u32(0, 1<<20, 1<<20, 4096, 16, 1, 0)
	}
	s.u32(0x40000000, 1, 0)
	if r, err = c.compound(s, 1); err != nil {
		return nil, err
	}
	c.session = append([]byte{}, r.take(16)...)
	var done xdr
	done.u32(58, 0)
	_, err = c.call(done, 1)
	return c, err
}

func (c *nfsClient) close() { _ = c.conn.Close() }

// call sends operations within the session, and gives what follows the status of the
// last one.
func (c *nfsClient) call(ops xdr, n uint32) (xdr, error) {
	c.sequence++
	var all xdr
	all.u32(53).fixed(c.session).u32(c.sequence, 0, 0, 0).fixed(ops)
	return c.compound(all, n+1)
}

func (c *nfsClient) compound(ops xdr, n uint32) (out xdr, err error) {
	defer func() {
		if e := recover(); e != nil {
			out, err = nil, fmt.Errorf("reply: %v", e)
		}
	}()
	c.xid++
	var cred, m xdr
	cred.u32(0).opaque([]byte("x")).u32(c.uid, c.gid, 0)
	m.u32(c.xid, 0, 2, 100003, 4, 1, 1).opaque(cred).u32(0, 0, 0, 1, n).fixed(ops)
	frame := binary.BigEndian.AppendUint32(nil, 1<<31|uint32(len(m)))
	if _, err := c.conn.Write(append(frame, m...)); err != nil {
		return nil, err
	}
	var r xdr
	for last := false; !last; {
		head := make([]byte, 4)
		if _, err := io.ReadFull(c.conn, head); err != nil {
			return nil, err
		}
		size := binary.BigEndian.Uint32(head)
		last = size&(1<<31) != 0
		part := make([]byte, size&^(1<<31))
		if _, err := io.ReadFull(c.conn, part); err != nil {
			return nil, err
		}
		r = append(r, part...)
	}
	r.take(8)
	if s := r.n(); s != 0 {
		return nil, fmt.Errorf("refused: %d", s)
	}
	r.n()
	r.bytes()
	if s := r.n(); s != 0 {
		return nil, fmt.Errorf("not accepted: %d", s)
	}
	status := nfsStatus(r.n())
	r.bytes()
	if status != 0 {
		return nil, status
	}
	for left := r.n(); left > 0; left-- {
		op := r.n()
		r.n()
		if left == 1 {
			break
		}
		switch op { // what comes before the last
		case 53:
			r.take(36)
		case 18:
			r.open()
		}
	}
	return r, nil
}

// open skips what OPEN says but the state's number, which it gives.
func (x *xdr) open() []byte {
	state := append([]byte{}, x.take(16)...)
	x.take(24)
	x.take(4 * int(x.n()))
	if x.n() == 3 { // no delegation, and why
		if why := x.n(); why == 1 || why == 2 {
			x.n()
		}
	}
	return state
}

// walk goes from the root by names, and gives the handle of where that is.
func (c *nfsClient) walk(names ...string) (handle []byte, err error) {
	var m xdr
	m.u32(24)
	for _, n := range names {
		m.u32(15).opaque([]byte(n))
	}
	m.u32(10)
	r, err := c.call(m, uint32(len(names))+2)
	if err != nil {
		return nil, err
	}
	return append([]byte{}, r.bytes()...), nil
}

// lookup is the handle of a name in a directory.
func (c *nfsClient) lookup(dir []byte, name string) ([]byte, error) {
	var m xdr
	m.u32(22).opaque(dir).u32(15).opaque([]byte(name)).u32(10)
	r, err := c.call(m, 3)
	if err != nil {
		return nil, err
	}
	return append([]byte{}, r.bytes()...), nil
}

// create makes a file in a directory, with what is in it.
func (c *nfsClient) create(dir []byte, name, text string) error {
	var m xdr
	m.u32(22).opaque(dir)
	m.u32(18, 0, 2, 0).u64(c.client).opaque([]byte("o")).u32(1, 0)
	var mode xdr
	mode.u32(0o600)
	m.u32(2, 0, 1<<1).opaque(mode).u32(0).opaque([]byte(name))
	m.u32(38).u32(1, 0, 0, 0).u64(0).u32(2).opaque([]byte(text)) // the current state
	_, err := c.call(m, 3)
	return err
}

// read is the beginning of a file.
func (c *nfsClient) read(handle []byte) (string, error) {
	var m xdr
	m.u32(22).opaque(handle).u32(25).u32(0, 0, 0, 0).u64(0).u32(4096)
	r, err := c.call(m, 2)
	if err != nil {
		return "", err
	}
	r.n()
	return string(r.bytes()), nil
}

// names of a directory.
func (c *nfsClient) names(dir []byte) (list []string, err error) {
	var m xdr
	m.u32(22).opaque(dir).u32(26).u64(0).u64(0).u32(8192, 8192, 0)
	r, err := c.call(m, 2)
	if err != nil {
		return nil, err
	}
	r.take(8)
	for r.n() == 1 {
		r.take(8)
		list = append(list, string(r.bytes()))
		r.take(4 * int(r.n()))
		r.bytes()
	}
	return list, nil
}
