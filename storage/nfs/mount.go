package nfs

import (
	"fmt"

	"github.com/muster-hpc/muster/wire"
)

// Mount is how a node mounts an export. While the server is away, programs wait
// instead of fail; no setuid program and no device of one node works on another.
func (s *Server) Mount(name, target string, readOnly bool) wire.Mount {
	access := "rw"
	if readOnly {
		access = "ro"
	}
	return wire.Mount{
		Source: s.cfg.Address.String() + ":/" + name, Target: target, Type: "nfs4",
		Options: fmt.Sprintf("%s,nosuid,nodev,hard,proto=tcp,port=%d,vers=4.1,sec=sys,_netdev", access, s.cfg.Port),
	}
}
