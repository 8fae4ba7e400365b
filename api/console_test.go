package api_test

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control"
	"github.com/muster-hpc/muster/daemon/controltest"
)

// loud is a console that says how large it is and what was typed.
type loud struct {
	net.Conn
	size func(columns, rows int)
}

func (l loud) Resize(columns, rows int) error {
	l.size(columns, rows)
	return nil
}

func TestConsole(t *testing.T) {
	t.Parallel()
	sizes, closed := make(chan [2]int, 9), make(chan string, 9)
	s := controltest.Start(t, controltest.Options{Machines: 3, Build: true, Control: func(c *control.Config) {
		c.Console = func(_ context.Context, m muster.Machine, shell bool) (io.ReadWriteCloser, error) {
			near, far := net.Pipe()
			go func() {
				_, _ = io.WriteString(far, "this is "+string(m.ID)+"\r\n")
				buf := make([]byte, 100)
				for {
					n, err := far.Read(buf)
					if err != nil {
						closed <- string(m.ID)
						return
					}
					if string(buf[:n]) == "exit\n" {
						_ = far.Close()
						return
					}
					_, _ = far.Write([]byte(strings.ToUpper(string(buf[:n]))))
				}
			}()
			return loud{near, func(c, r int) { sizes <- [2]int{c, r} }}, nil
		}
	}})
	alice, bob := s.User("alice", "bio"), s.User("bob", "chem")
	c := create(t, s, alice, "cfd")
	read := func(r io.Reader, want string) {
		t.Helper()
		buf := make([]byte, 1000)
		n, err := r.Read(buf)
		if err != nil || !strings.Contains(string(buf[:n]), want) {
			t.Fatalf("%q, not %q: %v", buf[:n], want, err)
		}
	}
	conn, err := s.Client(alice).NodeConsole(t.Context(), "cfd", "n01", false)
	if err != nil {
		t.Fatal(err)
	}
	read(conn, "this is ")
	_ = conn.Close()
	<-closed // hanging up ends it
	if _, err := s.Client(alice).NodeConsole(t.Context(), "cfd", "n01", true); muster.CodeOf(err) != muster.EForbidden {
		t.Error("a user is root:", err)
	}
	if _, err := s.Client(bob).NodeConsole(t.Context(), string(c.ID), "n01", false); muster.CodeOf(err) != muster.ENotFound {
		t.Error("another project's user reads:", err)
	}
	if _, err := s.Client(alice).MachineConsole(t.Context(), "m-1", false); muster.CodeOf(err) != muster.EForbidden {
		t.Error("a user reads a machine:", err)
	}
	conn, err = s.Client("").NodeConsole(t.Context(), string(c.ID), "n01", true)
	if err != nil {
		t.Fatal(err)
	}
	read(conn, "this is ")
	if err := conn.Size(132, 43); err != nil {
		t.Fatal(err)
	}
	if got := <-sizes; got != [2]int{132, 43} {
		t.Error("size", got)
	}
	_ = conn.Type([]byte("ls"))
	read(conn, "LS")
	_ = conn.Type([]byte("exit\n"))
	if _, err := conn.Read(make([]byte, 10)); err == nil {
		t.Error("the shell has ended and the connection has not")
	}
	// A server that stops ends consoles.
	if conn, err = s.Client("").NodeConsole(t.Context(), string(c.ID), "n01", false); err != nil {
		t.Fatal(err)
	}
	read(conn, "this is ")
	s.StopServing()
	if _, err := conn.Read(make([]byte, 10)); err == nil {
		t.Error("the server has stopped and the connection has not")
	}
}
