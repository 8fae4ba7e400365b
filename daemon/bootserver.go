package daemon

import (
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/muster-hpc/muster/internal/connlimit"
	"github.com/muster-hpc/muster/wire"
)

// bootServer answers machines that boot, over TLS: who they are and what they do, and
// their images.
func (s *Server) bootServer(m *metalParts) *http.Server {
	mux := http.NewServeMux()
	mux.Handle(wire.BootPath, s.meeting(m.desk.Handler()))
	mux.Handle(wire.BootFilePath, m.provider.Files())
	one := new(http.Protocols) // a request for each connection: these are counted
	one.SetHTTP1(true)
	// No deadline for what is sent: an image takes long on a slow network. Who takes
	// nothing holds one of so many places.
	return &http.Server{
		Handler: mux, TLSConfig: s.authority.NodeTLS(nil, []netip.Addr{m.address}), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute,
		IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10, ErrorLog: quiet(s.log),
		Protocols: one,
	}
}

// bootsOfOne are connections of one machine that boots at once: it has one for every piece
// of its image under way, and one for its hellos.
const bootsOfOne = 32

// serveBoots serves on a listener until the server is closed. Connections come before
// anybody is known, and must not use up what the API needs.
func serveBoots(srv *http.Server, ln net.Listener) error {
	return srv.ServeTLS(connlimit.New(ln, connlimit.Limits{Total: 8192, PerAddress: bootsOfOne, First: true}), "", "")
}
