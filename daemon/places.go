package daemon

import (
	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster/internal/connlimit"
)

const (
	// wantedFiles is how many descriptors a server asks for; the host may give fewer.
	wantedFiles = 1 << 17
	// leastFiles is what the smallest host has.
	leastFiles = 1024
	// apiOfOne and agentsOfOne are connections of one address: many people may sit behind
	// one, and a machine has one agent.
	apiOfOne    = 1024
	agentsOfOne = 64
)

// raiseFiles asks for as many descriptors as the host gives, and reports how many that are.
func raiseFiles() int {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil {
		return leastFiles
	}
	if l.Cur < wantedFiles {
		more := unix.Rlimit{Cur: wantedFiles, Max: max(l.Max, wantedFiles)}
		if unix.Setrlimit(unix.RLIMIT_NOFILE, &more) != nil { // not root, or the kernel has fewer
			_ = unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: l.Max, Max: l.Max})
		}
		_ = unix.Getrlimit(unix.RLIMIT_NOFILE, &l)
	}
	return int(min(l.Cur, 1<<20))
}

// apiPlaces and agentPlaces are the shares of so many descriptors that connections have:
// a quarter people over the network, half agents. What is left is for the local socket,
// by which an administrator always comes in, the store, images and processes.
func apiPlaces(files int) connlimit.Limits {
	return connlimit.Limits{Total: files / 4, PerAddress: min(apiOfOne, files/8), PerName: max(16, files/64)}
}

// gatewayPlaces is the share of the SSH gateway: each session holds one descriptor more, to the node.
func gatewayPlaces(files int) connlimit.Limits {
	return connlimit.Limits{Total: files / 16, PerAddress: min(apiOfOne, files/32), PerName: max(16, files/256)}
}

// proxyPlaces is the share of the egress proxy's own listener, and proxyRequests how many
// requests it serves at once: each holds two descriptors.
func proxyPlaces(files int) connlimit.Limits {
	return connlimit.Limits{Total: files / 16, PerAddress: max(16, files/128), PerName: max(16, files/64)}
}

func proxyRequests(files int) int { return max(64, min(4096, files/32)) }

// controllerPlaces is how many management controllers are spoken to at once: each holds
// a descriptor or two.
func controllerPlaces(files int) int { return max(64, min(4096, files/16)) }

func agentPlaces(files int) connlimit.Limits {
	return connlimit.Limits{Total: files / 2, PerAddress: min(agentsOfOne, files/8)}
}
