package api

import (
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/muster-hpc/muster"
)

// tunnelProtocol is what a connection is upgraded to.
const tunnelProtocol = "muster-tunnel"

// tunnel joins the connection of a request with far, until both directions
// have ended. It closes far.
func (a *API) tunnel(w http.ResponseWriter, r *http.Request, far net.Conn) {
	defer far.Close()
	near, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		a.write(w, r, muster.Errorf(muster.EInvalid, "this connection cannot become a tunnel").Because(muster.ReasonNotUpgraded).WithHint("use HTTP/1.1").Wrap(err))
		return
	}
	defer near.Close()
	_ = near.SetDeadline(time.Time{})
	if _, err := io.WriteString(near, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+tunnelProtocol+"\r\n\r\n"); err != nil {
		return
	}
	// The client may have spoken early: those bytes are in the reader.
	early := io.LimitReader(buffered.Reader, int64(buffered.Reader.Buffered()))
	var both sync.WaitGroup
	both.Go(func() {
		if _, err := io.Copy(far, early); err == nil {
			_, _ = io.Copy(far, near)
		}
		closeWrite(far)
	})
	both.Go(func() {
		_, _ = io.Copy(near, far)
		closeWrite(near)
		// The node has hung up: nothing the client still sends has a reader.
		_ = near.SetReadDeadline(time.Now().Add(time.Second))
	})
	defer a.whileAllowed(r, func() { near.Close(); far.Close() })()
	done := make(chan struct{})
	go func() {
		select {
		case <-a.closing:
			near.Close()
			far.Close()
		case <-done:
		}
	}()
	both.Wait()
	close(done)
}

// closeWrite passes on the end of one direction; the other may go on.
func closeWrite(c net.Conn) {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
		return
	}
	_ = c.Close()
}
