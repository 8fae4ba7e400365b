package cli

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/term"
)

// streams are what a remote command is connected to.
type streams struct {
	in  io.Reader // nil: nothing
	out io.Writer
	err io.Writer
	tty bool
}

// attach runs a command in a session until it ends, and gives its status. An
// interrupt is passed on to the command.
func (a *app) attach(ctx context.Context, conn *ssh.Client, session *ssh.Session, command string, s streams) error {
	session.Stdout, session.Stderr = s.out, s.err
	if s.tty {
		restore, err := a.giveTerminal(session)
		if err != nil {
			return err
		}
		defer restore()
	}
	// Not session.Stdin: Wait would wait for an input that nobody ends.
	stdin, err := session.StdinPipe()
	if err != nil {
		return broken(err)
	}
	if err := session.Start(command); err != nil {
		return broken(err)
	}
	go func() {
		if s.in != nil {
			_, _ = io.Copy(stdin, s.in)
		}
		_ = stdin.Close()
	}()
	ended := make(chan error, 1)
	go func() { ended <- session.Wait() }()
	select {
	case err := <-ended:
		return remoteStatus(err)
	case <-ctx.Done():
	}
	_ = session.Signal(ssh.SIGINT)
	select {
	case err := <-ended:
		return remoteStatus(err)
	case <-time.After(2 * time.Second):
		_ = conn.Close()
		return &StatusError{Status: exitInterrupted}
	}
}

// giveTerminal asks for a terminal like ours, and puts ours into raw mode
// until the returned function is called.
func (a *app) giveTerminal(session *ssh.Session) (func(), error) {
	name := first(a.env.getenv("TERM"), "xterm")
	width, height := 80, 24
	file, ok := a.env.In.(*os.File)
	real := ok && term.IsTerminal(int(file.Fd()))
	if real {
		if w, h, err := term.GetSize(int(file.Fd())); err == nil {
			width, height = w, h
		}
	}
	if err := session.RequestPty(name, height, width, ssh.TerminalModes{ssh.ECHO: 1}); err != nil {
		return nil, broken(err)
	}
	if !real {
		return func() {}, nil
	}
	old, err := term.MakeRaw(int(file.Fd()))
	if err != nil {
		return nil, err
	}
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	go func() {
		for range resized {
			if w, h, err := term.GetSize(int(file.Fd())); err == nil {
				_ = session.WindowChange(h, w)
			}
		}
	}()
	return func() {
		signal.Stop(resized)
		close(resized)
		_ = term.Restore(int(file.Fd()), old)
	}, nil
}

// signalNumber is the number of a signal that ended a remote command.
func signalNumber(name string) int {
	for s, n := range map[ssh.Signal]int{
		ssh.SIGHUP: 1, ssh.SIGINT: 2, ssh.SIGQUIT: 3, ssh.SIGILL: 4, ssh.SIGABRT: 6, ssh.SIGFPE: 8,
		ssh.SIGKILL: 9, ssh.SIGSEGV: 11, ssh.SIGPIPE: 13, ssh.SIGALRM: 14, ssh.SIGTERM: 15, ssh.SIGUSR1: 10, ssh.SIGUSR2: 12,
	} {
		if string(s) == name {
			return n
		}
	}
	return 0
}
