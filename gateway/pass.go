package gateway

import (
	"errors"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"
)

// statusTime is how long the end of what a command said is held back for its exit status.
const statusTime = 3 * time.Second

// passChannel opens a channel at the other side and joins the two until they end.
func passChannel(n ssh.NewChannel, other ssh.Conn, kind requestKinds, passed *atomic.Int64) {
	far, fromFar, err := other.OpenChannel(n.ChannelType(), n.ExtraData())
	if err != nil {
		reason, text := ssh.ConnectionFailed, "the node is gone"
		var refused *ssh.OpenChannelError
		if errors.As(err, &refused) {
			reason, text = refused.Reason, refused.Message
		}
		_ = n.Reject(reason, text)
		return
	}
	defer far.Close()
	near, fromNear, err := n.Accept()
	if err != nil {
		go ssh.DiscardRequests(fromFar)
		return
	}
	defer near.Close()
	go func() {
		_, _ = io.Copy(counting{far, passed}, near)
		_ = far.CloseWrite()
	}()
	var answering sync.Mutex
	go func() {
		passRequests(fromNear, far, kind.there, &answering, func(string) {})
		_ = far.Close() // who opened it has closed it
	}()
	var said sync.WaitGroup
	said.Go(func() { _, _ = io.Copy(counting{near, passed}, far) })
	said.Go(func() { _, _ = io.Copy(counting{near.Stderr(), passed}, far.Stderr()) })
	ended := make(chan struct{}) // how it ended has been passed, or will never be
	end := sync.OnceFunc(func() { close(ended) })
	var done sync.WaitGroup
	done.Go(func() {
		said.Wait()
		// Some clients (PuTTY's) close a channel as soon as both sides have said all, and never hear
		// of an exit status that comes after that. A server sends it before, as a rule; here the two
		// come by ways of their own.
		if slices.Contains(kind.back, "exit-status") {
			select {
			case <-ended:
			case <-time.After(statusTime):
			}
		}
		_ = near.CloseWrite()
	})
	done.Go(func() {
		passRequests(fromFar, near, kind.back, new(sync.Mutex), func(passed string) {
			if passed == "exit-status" || passed == "exit-signal" {
				end()
			}
		})
		end()
	})
	// Closed once all that it said has passed, and how it ended: that comes after the last byte or
	// before it, and the end of the requests is the end of the channel.
	done.Wait()
	answering.Lock() // a short command can end before the answer to its start has been passed
	answering.Unlock()
}

// passRequests passes requests on, with their answers, until the channel they come of is closed. answering is
// held from a request to its answer. After each it says of which type it was.
func passRequests(requests <-chan *ssh.Request, to ssh.Channel, allowed []string, answering *sync.Mutex, passed func(kind string)) {
	for r := range requests {
		if !slices.Contains(allowed, r.Type) {
			_ = r.Reply(false, nil)
			continue
		}
		answering.Lock()
		ok, err := to.SendRequest(r.Type, r.WantReply, r.Payload)
		_ = r.Reply(ok && err == nil, nil)
		answering.Unlock()
		passed(r.Type)
	}
}
