package agent

import (
	"bufio"
	"context"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/muster-hpc/muster/wire"
)

// How another node is tried: a machine that is frozen accepts a connection and
// says nothing, so it must say something.
const (
	reachAtMost = 1500 * time.Millisecond
	reachNames  = 16
	reachPort   = "22"
)

// reacher tries other nodes for the server, one question after the other.
type reacher struct {
	mu    sync.Mutex
	hosts []wire.Host
	busy  bool
}

func (p *reacher) know(hosts []wire.Host) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hosts = hosts
}

// reach tries whether some nodes answer, and has the next report say so. A
// question that comes while another is open is dropped: the server asks again.
func (a *agent) reach(names []string) {
	if len(names) == 0 {
		return
	}
	names = names[:min(len(names), reachNames)]
	p := &a.reacher
	p.mu.Lock()
	if p.busy {
		p.mu.Unlock()
		return
	}
	p.busy = true
	var hosts []wire.Host
	for _, h := range p.hosts {
		for _, name := range names {
			if h.Name == name {
				hosts = append(hosts, h)
			}
		}
	}
	p.mu.Unlock()
	a.jobs.Go(func() {
		found := make([]wire.Reach, len(hosts))
		var all sync.WaitGroup
		for i, h := range hosts {
			all.Go(func() { found[i] = wire.Reach{Name: h.Name, OK: a.answers(h.Address)} })
		}
		all.Wait()
		p.mu.Lock()
		p.busy = false
		p.mu.Unlock()
		if a.ctx.Err() == nil && len(found) > 0 {
			a.out.reached(found)
		}
	})
}

// answers reports whether something alive speaks at an address.
func (a *agent) answers(address string) bool {
	ctx, cancel := context.WithTimeout(a.ctx, reachAtMost)
	defer cancel()
	if a.Reach != nil {
		return a.Reach(ctx, address) == nil
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(address, reachPort))
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }()
	if end, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(end)
	}
	text, err := bufio.NewReaderSize(conn, 256).ReadSlice('\n')
	return err == nil && strings.HasPrefix(string(text), "SSH-")
}
