package sysinfo

import (
	"encoding/binary"
	"errors"
	"strings"

	"golang.org/x/sys/unix"
)

// qdisc is what sends the packets of an interface.
type qdisc struct {
	kind string
	rate int64 // bytes/s; 0: no limit that is known
	held int64 // packets that had to wait
	lost int64
}

// Numbers of the kernel's interface for traffic control: linux/pkt_sched.h,
// linux/rtnetlink.h, linux/gen_stats.h.
const (
	tcHeader    = 20 // struct tcmsg: family, index, handle, parent, info
	tcRoot      = 0xffffffff
	tcKind      = 1
	tcOptions   = 2
	tcStats     = 7
	statsQueue  = 3 // struct gnet_stats_queue: length, backlog, drops, requeues, overlimits
	tbfParms    = 1 // struct tc_tbf_qopt: begins with a struct tc_ratespec
	tbfRate64   = 4
	rateAt      = 8 // of the rate in a tc_ratespec
	mostNetlink = 1 << 18
)

// askQdiscs asks the kernel for everything that sends packets in this network
// namespace. It needs no privileges.
func askQdiscs() ([]byte, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(fd) }()
	// The kernel answers at once; if it ever did not, nobody may wait for it.
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 2}); err != nil {
		return nil, err
	}
	ask := make([]byte, unix.SizeofNlMsghdr+tcHeader)
	n := binary.NativeEndian
	n.PutUint32(ask, uint32(len(ask)))
	n.PutUint16(ask[4:], unix.RTM_GETQDISC)
	n.PutUint16(ask[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	n.PutUint32(ask[8:], 1)
	if err := unix.Sendto(fd, ask, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, err
	}
	var all []byte
	buf := make([]byte, 1<<16)
	for len(all) < mostNetlink {
		m, _, err := unix.Recvfrom(fd, buf, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || m < unix.SizeofNlMsghdr {
			return all, err
		}
		all = append(all, buf[:m]...)
		if kind := n.Uint16(buf[4:]); kind == unix.NLMSG_DONE || kind == unix.NLMSG_ERROR {
			break
		}
	}
	return all, nil
}

// parseQdiscs finds what stands first on each interface, by its number.
func parseQdiscs(b []byte) map[int64]qdisc {
	out := map[int64]qdisc{}
	n := binary.NativeEndian
	for len(b) >= unix.SizeofNlMsghdr {
		size := int64(n.Uint32(b))
		if size < unix.SizeofNlMsghdr || size > int64(len(b)) {
			break
		}
		msg := b[unix.SizeofNlMsghdr:size]
		if n.Uint16(b[4:]) == unix.RTM_NEWQDISC && len(msg) >= tcHeader && n.Uint32(msg[12:]) == tcRoot {
			out[int64(int32(n.Uint32(msg[4:])))] = parseQdisc(msg[tcHeader:])
		}
		b = b[min((size+3)&^3, int64(len(b))):]
	}
	return out
}

func parseQdisc(attrs []byte) qdisc {
	var q qdisc
	n := binary.NativeEndian
	var options []byte
	eachAttr(attrs, func(kind uint16, v []byte) {
		switch kind {
		case tcKind:
			q.kind = strings.TrimRight(string(v[:min(len(v), 16)]), "\x00")
		case tcOptions:
			options = v
		case tcStats:
			eachAttr(v, func(kind uint16, v []byte) {
				if kind == statsQueue && len(v) >= 20 {
					q.lost, q.held = int64(n.Uint32(v[8:])), int64(n.Uint32(v[16:]))
				}
			})
		}
	})
	if q.kind == "tbf" {
		eachAttr(options, func(kind uint16, v []byte) {
			switch {
			case kind == tbfParms && len(v) >= rateAt+4 && q.rate == 0:
				q.rate = int64(n.Uint32(v[rateAt:]))
			case kind == tbfRate64 && len(v) >= 8: // of rates that the other cannot hold
				q.rate = int64(n.Uint64(v) & (1<<62 - 1))
			}
		})
	}
	return q
}

// eachAttr walks over the attributes of a message.
func eachAttr(b []byte, do func(kind uint16, value []byte)) {
	n := binary.NativeEndian
	for len(b) >= 4 {
		size := int(n.Uint16(b))
		if size < 4 || size > len(b) {
			return
		}
		do(n.Uint16(b[2:])&^(unix.NLA_F_NESTED|unix.NLA_F_NET_BYTEORDER), b[4:size])
		b = b[min((size+3)&^3, len(b)):]
	}
}
