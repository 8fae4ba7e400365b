package cli

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/crypto/ssh"
)

// A node that hangs up before it lets anybody in is asked again, some times.
func TestLogInAgain(t *testing.T) {
	t.Parallel()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	host, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	server := &ssh.ServerConfig{NoClientAuth: true}
	server.AddHostKey(host)
	client := &ssh.ClientConfig{User: "alice", HostKeyCallback: ssh.FixedHostKey(host.PublicKey())}
	for hangsUp, want := range map[int]bool{0: true, 1: true, 2: true, 3: false} {
		synctest.Test(t, func(t *testing.T) {
			asked := 0
			open := func() (net.Conn, error) {
				near, out := net.Pipe() // two of them: both ends speak first
				in, far := net.Pipe()
				for to, from := range map[net.Conn]net.Conn{in: out, out: in} {
					go func() { _, _ = io.Copy(to, from); to.Close(); from.Close() }()
				}
				asked++
				if asked <= hangsUp {
					go func() { _, _ = io.ReadFull(far, make([]byte, 1)); far.Close() }()
					return near, nil
				}
				go func() {
					c, _, requests, err := ssh.NewServerConn(far, server)
					if err != nil {
						t.Error(err)
						return
					}
					go ssh.DiscardRequests(requests)
					_ = c.Wait()
				}()
				return near, nil
			}
			conn, _ := open()
			began := time.Now()
			c, err := logIn(context.Background(), conn, open, "n01", client)
			if (err == nil) != want || time.Since(began) > 10*time.Second {
				t.Errorf("hung up %d times: %v after %v", hangsUp, err, time.Since(began))
			}
			if c != nil {
				c.Close()
			}
		})
	}
}
