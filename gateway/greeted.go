package gateway

import "bytes"

// version is what the server greets with, whatever the client says first.
const version = "SSH-2.0-muster"

// greetedConn is a connection at which the greeting was said: the SSH library says it, too.
type greetedConn struct {
	*meteredConn
	said bool
}

// Write writes everything but the greeting.
func (g *greetedConn) Write(p []byte) (int, error) {
	if !g.said && bytes.Equal(p, []byte(version+"\r\n")) {
		g.said = true
		return len(p), nil
	}
	return g.meteredConn.Write(p)
}
