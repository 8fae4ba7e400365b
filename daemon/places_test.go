package daemon

import (
	"net"
	"testing"
)

// The shares of the descriptors leave a quarter for the local socket and the rest.
func TestPlacesLeaveAReserve(t *testing.T) {
	t.Parallel()
	if n := raiseFiles(); n < leastFiles {
		t.Errorf("%d descriptors", n)
	}
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	s := &Server{files: 4096}
	if s.apiPlaces(ln) == ln || s.agentPlaces(ln, agentsOfOne) == ln {
		t.Error("not bounded")
	}
}
