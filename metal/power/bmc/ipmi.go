package bmc

import (
	"net"

	"github.com/muster-hpc/muster/metal/power/rmcp"
)

// atOnce is how many packets a controller answers at the same time.
const atOnce = 16

// serveIPMI answers packets until the socket is closed.
func (b *BMC) serveIPMI() {
	slots := make(chan struct{}, atOnce)
	buf := make([]byte, rmcp.MaxPacket)
	for {
		n, from, err := b.udp.ReadFrom(buf)
		if err != nil {
			if b.ctx.Err() != nil {
				return
			}
			continue // a packet that nobody took at the other end
		}
		packet := append([]byte(nil), buf[:n]...)
		slots <- struct{}{}
		b.wait.Go(func() {
			defer func() { <-slots }()
			b.answer(packet, from)
		})
	}
}

func (b *BMC) answer(packet []byte, from net.Addr) {
	if !b.delay(b.ctx) {
		return
	}
	p, err := rmcp.Parse(packet)
	if err != nil {
		return // as a real one: what is not understood is not answered
	}
	if reply := b.reply(p); reply != nil {
		_, _ = b.udp.WriteTo(reply, from)
	}
}

// reply makes the answer to a packet, nil for none.
func (b *BMC) reply(p rmcp.Packet) []byte {
	switch {
	case !p.Plus && p.Session == 0:
		return b.sessionless(p)
	case !p.Plus:
		return nil // no sessions of IPMI 1.5
	case p.Session != 0:
		return b.inSession(p)
	case p.Encrypted || p.Authenticated:
		return nil
	}
	switch p.Type {
	case rmcp.TypeIPMI:
		return b.sessionless(p)
	case rmcp.TypeOpenRequest:
		return b.openSession(p.Payload)
	case rmcp.TypeRAKP1:
		return b.rakp1(p.Payload)
	case rmcp.TypeRAKP3:
		return b.rakp3(p.Payload)
	}
	return nil
}

// sessionless answers the few questions that need no session.
func (b *BMC) sessionless(p rmcp.Packet) []byte {
	q, err := rmcp.ParseRequest(p.Payload)
	if err != nil {
		return nil
	}
	r := rmcp.Response{Function: q.Function, Sequence: q.Sequence, Command: q.Command, Code: rmcp.CodeNoPrivilege}
	if q.Function == rmcp.App {
		switch q.Command {
		case rmcp.GetChannelCapabilities:
			r.Code, r.Data = channelCapabilities(q.Data)
		case rmcp.GetCipherSuites:
			r.Code, r.Data = cipherSuites(q.Data)
		case rmcp.GetSystemGUID:
			r.Code, r.Data = rmcp.CodeDone, b.guid[:]
		}
	}
	if p.Plus {
		return rmcp.Plain(rmcp.TypeIPMI, r.Bytes())
	}
	return rmcp.Plain15(r.Bytes())
}

// channelCapabilities: RMCP+ with accounts that have names (22.13).
func channelCapabilities(data []byte) (rmcp.Code, []byte) {
	if len(data) < 2 {
		return rmcp.CodeLength, nil
	}
	const (
		plus     = 0x80 // the extended answer follows
		names    = 0x04 // accounts with names
		version2 = 0x02
	)
	return rmcp.CodeDone, []byte{1, plus, names, version2, 0, 0, 0, 0}
}

// cipherSuites lists them as records of 22.15.1, sixteen bytes at a time.
func cipherSuites(data []byte) (rmcp.Code, []byte) {
	if len(data) < 3 {
		return rmcp.CodeLength, nil
	}
	var records []byte
	for _, s := range rmcp.Suites() {
		records = append(records, 0xc0, s.ID, s.Authentication, 0x40|s.Integrity, 0x80|s.Confidentiality)
	}
	begin := min(int(data[2]&0x3f)*16, len(records))
	return rmcp.CodeDone, append([]byte{1}, records[begin:min(begin+16, len(records))]...)
}
