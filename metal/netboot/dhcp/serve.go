package dhcp

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"
)

// packet is what came in.
type packet struct {
	data []byte
	from netip.AddrPort
	port int
}

// batch is at most how many packets are answered with one write of the leases.
const batch = 64

// Serve answers until the context ends or a socket fails; ready is called once
// requests are heard. Whatever waits when a
// packet comes is answered together, so that under load many leases are written
// to the disk at once.
func (s *Server) Serve(ctx context.Context, ready func()) error {
	ports := []int{67}
	if s.Mode == Proxy {
		ports = append(ports, ProxyPort)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out, err := openOutlet(s.Interface)
	if err != nil {
		return err
	}
	defer out.close()
	probe, err := openProber(s, out)
	if err != nil {
		return err
	}
	var readers sync.WaitGroup
	var conns []*net.UDPConn
	stop := sync.OnceFunc(func() {
		probe.close()
		for _, c := range conns {
			_ = c.Close()
		}
	})
	defer readers.Wait() // after stop, which ends them
	defer stop()
	defer cancel()
	for _, port := range ports {
		c, err := listen(ctx, s.Interface, port)
		if err != nil {
			return err
		}
		conns = append(conns, c)
	}
	in := make(chan packet, 256)
	failed := make(chan error, len(conns)+1)
	buffers := &sync.Pool{New: func() any { b := make([]byte, 2048); return &b }}
	for i, c := range conns {
		readers.Go(func() { failed <- s.read(ctx, c, ports[i], in, buffers) })
	}
	if s.Mode == Serve {
		readers.Go(func() { failed <- probe.listen() })
		readers.Go(func() { probe.ahead(ctx) })
	}
	defer context.AfterFunc(ctx, stop)()
	w := &worker{Server: s, out: out, conns: conns, probe: probe, neighbours: openNeighbours(s)}
	defer w.neighbours.close()
	if ready != nil {
		ready()
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-failed:
			if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return nil
			}
			return err
		case p := <-in:
			w.answer(p, in, buffers)
		}
	}
}

// read passes packets on until the socket is closed.
func (s *Server) read(ctx context.Context, c *net.UDPConn, port int, in chan<- packet, buffers *sync.Pool) error {
	for {
		b := buffers.Get().(*[]byte)
		n, _, flags, from, err := c.ReadMsgUDPAddrPort((*b)[:cap(*b)], nil)
		if err != nil {
			return err
		}
		const truncated = 0x20 // MSG_TRUNC
		if flags&truncated != 0 {
			s.dropped.Add(1)
			buffers.Put(b)
			continue
		}
		select {
		case in <- packet{(*b)[:n], from, port}:
		case <-ctx.Done():
			return nil
		}
	}
}

// worker answers, in one goroutine: the buffers of a batch are its own.
type worker struct {
	*Server
	out        *outlet
	conns      []*net.UDPConn
	probe      *prober
	neighbours *neighbours
	frames     [batch][]byte
	replies    [batch]reply
}

// answer answers a packet and those that wait behind it.
func (w *worker) answer(p packet, in <-chan packet, buffers *sync.Pool) {
	now := w.Clock.Now()
	n := 0
	// Packets are counted, not answers: a flood of what is not answered must not
	// keep the answers back.
	for read := 0; read < batch; read++ {
		if r, ok := w.handle(p.data, p.from, p.port, now); ok {
			w.replies[n] = r
			f := w.frames[n]
			if f == nil {
				f = make([]byte, headers, headers+maxReply)
			}
			w.frames[n] = r.append(f[:headers], w.Address)
			n++
		}
		b := p.data[:cap(p.data)]
		buffers.Put(&b)
		if read == batch-1 {
			break
		}
		select {
		case p = <-in:
			continue
		default:
		}
		break
	}
	w.flush(n, now)
}

// flush keeps the leases of a batch and then tells the machines. When they cannot
// be kept, nobody is told of one: a machine asks again.
func (w *worker) flush(n int, now time.Time) {
	kept := w.keep()
	for i := range n {
		r := &w.replies[i]
		if !kept && r.address.IsValid() && r.kind == ack {
			w.dropped.Add(1)
			w.note(r.request, netip.Addr{}, "refused", "leases cannot be written to the disk")
			continue
		}
		if err := w.send(r, w.frames[i]); err != nil {
			w.dropped.Add(1)
			w.note(r.request, netip.Addr{}, "refused", "the answer could not be sent: "+err.Error())
		}
		if r.kind == offer && !r.request.Evidence.Relay.IsValid() {
			w.probe.ask(r.address, now)
		}
		*r = reply{}
	}
}

// keep puts what changed into Leases, and then into the neighbour table.
func (w *worker) keep() bool {
	leases, kept := w.table.unkept()
	if len(leases) == 0 {
		return true
	}
	if w.Config.Leases != nil && w.Config.Leases.Put(leases) != nil {
		return false
	}
	for _, l := range leases {
		w.neighbours.set(l)
	}
	kept()
	return true
}

// send is RFC 2131's way to the client (4.1): by its relay; to the address that
// it has; to all, if it wants that; or to its MAC, because it does not answer ARP
// for the address that it is being given.
func (w *worker) send(r *reply, frame []byte) error {
	q := r.request
	conn := w.conns[0]
	if r.proxy && len(w.conns) > 1 && r.client.IsValid() {
		conn = w.conns[1]
	}
	switch {
	case q.Evidence.Relay.IsValid():
		_, err := conn.WriteToUDPAddrPort(frame[headers:], netip.AddrPortFrom(q.Evidence.Relay, 67))
		return err
	case r.kind != nak && r.client.IsValid():
		port := uint16(68)
		if r.proxy {
			port = r.from
		}
		_, err := conn.WriteToUDPAddrPort(frame[headers:], netip.AddrPortFrom(r.client, port))
		return err
	}
	all := MAC{255, 255, 255, 255, 255, 255}
	if r.kind == nak || q.broadcast() || !r.to.IsValid() {
		sealFrame(frame, w.out.mac, all, w.Address, broadcastAddr())
	} else {
		sealFrame(frame, w.out.mac, q.MAC, w.Address, r.to)
	}
	return w.out.send(frame)
}
