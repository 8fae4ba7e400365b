package sysinfo

import (
	"strings"

	"github.com/muster-hpc/muster/wire"
)

// links are the network interfaces that reach outside.
func (s Source) links() []wire.LinkCounts {
	list := parseDevices(s.file("proc/net/dev"))
	var sending map[int64]qdisc
	ask := s.Qdiscs
	if ask == nil {
		ask = askQdiscs
	}
	if b, err := ask(); err == nil {
		sending = parseQdiscs(b)
	}
	for i := range list {
		l := &list[i]
		at := "sys/class/net/" + l.Name + "/"
		if strings.ContainsAny(l.Name, "/") {
			continue
		}
		l.Speed = min(s.count(at+"speed"), 1<<30) * 1_000_000 // Mbit/s; -1 is none
		if v := s.text(at + "duplex"); v == "full" || v == "half" {
			l.Duplex = v
		}
		l.MTU = s.count(at + "mtu")
		if q, ok := sending[s.count(at+"ifindex")]; ok {
			l.Qdisc, l.Rate, l.Held, l.Lost = q.kind, q.rate, q.held, q.lost
		}
	}
	return list
}

// parseDevices reads /proc/net/dev: eight columns of what was received, eight of
// what was sent.
func parseDevices(text string) []wire.LinkCounts {
	var list []wire.LinkCounts
	for line := range strings.Lines(text) {
		name, rest, ok := strings.Cut(line, ":")
		w := strings.Fields(rest)
		name = strings.TrimSpace(name)
		if !ok || len(w) < 12 || name == "lo" || name == "" || len(list) == wire.MaxLinks {
			continue
		}
		list = append(list, wire.LinkCounts{
			Name: name, Received: count(w[0]), Sent: count(w[8]),
			Errors: count(w[2]) + count(w[10]), Dropped: count(w[3]) + count(w[11]),
		})
	}
	return list
}
