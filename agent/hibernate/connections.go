package hibernate

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

// endWithin is how long ending them may take.
const endWithin = 30 * time.Second

// nfsPort is where NFS is served unless a mount says otherwise.
const nfsPort = 2049

// EndConnections ends the machine's connections to the servers of its volumes, when it has gone on from its memory: the
// kernel opens others at once, and asks again for what was under way.
//
// The kernel's network runs while the memory is written, after it was copied. So it may have acknowledged an answer that
// the copy knows nothing of: the server does not send it again, and the copy waits for it as long as it lives. Nobody's
// programs ran meanwhile; the kernel's own client of NFS did.
func (k Kernel) EndConnections(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, endWithin)
	defer cancel()
	var problems []error
	for _, server := range k.nfsServers() {
		cmd := exec.CommandContext(ctx, "ss", "--kill", "--tcp", "--numeric", "dst", server.Addr().String(), "and", "dport", "=", strconv.Itoa(int(server.Port())))
		if out, err := cmd.CombinedOutput(); err != nil {
			problems = append(problems, fmt.Errorf("end the connections to %s: %w: %s", server, err, strings.TrimSpace(string(out))))
		}
	}
	return errors.Join(problems...)
}

// nfsServers are the servers of what is mounted by NFS, each once.
func (k Kernel) nfsServers() (list []netip.AddrPort) {
	for line := range strings.Lines(k.read("proc/mounts")) {
		p := strings.Fields(line)
		if len(p) < 4 || p[2] != "nfs4" && p[2] != "nfs" {
			continue
		}
		var at netip.Addr
		port := uint64(nfsPort)
		for option := range strings.SplitSeq(p[3], ",") {
			name, value, _ := strings.Cut(option, "=")
			switch name {
			case "addr":
				at, _ = netip.ParseAddr(value)
			case "port":
				if n, err := strconv.ParseUint(value, 10, 16); err == nil && n > 0 {
					port = n
				}
			}
		}
		if server := netip.AddrPortFrom(at, uint16(port)); at.IsValid() && !slices.Contains(list, server) {
			list = append(list, server)
		}
	}
	return list
}
