package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/api/client"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

const (
	// consoleEscape leaves a shell, whatever runs in it: Ctrl-].
	consoleEscape = 0x1d
	// endOfInput tells a shell that nothing more is typed: Ctrl-D.
	endOfInput = 0x04
	// endAgain is after which time it is told again.
	endAgain = 250 * time.Millisecond
	// consoleQuiet is the silence after which all that was printed is told.
	consoleQuiet = 400 * time.Millisecond
)

func (a *app) console() *cobra.Command {
	var shell, follow, machine bool
	c := &cobra.Command{
		Use: "console CLUSTER [NODE] | console --machine MACHINE", Short: "Show a node's console, or open a root shell on it",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage(c, "CLUSTER is missing")
			}
			return atMost(2)(c, args)
		},
		Long: `Shows the console output of a node since it was booted, and keeps showing new output.
It needs neither the node's network nor its agent, so it works for nodes that do not
respond. Ctrl-C ends it.

With --shell it opens a root shell on the node, for administrators, and for users of
clusters on which users are root. It works when sshd and the agent are dead. End it
with exit or, whatever runs in it, with Ctrl-].

For a bare machine it shows the stages of its boot, as the server knows them; there is
no shell. The machine's own output is on its console, or on that of its BMC
(ipmitool ... sol activate).

Without NODE it is the head's console. Administrators can give a machine instead, with
--machine, or by name if no cluster has that name. Every session is logged
(muster events).`,
		Example: `  muster console cfd n03
  muster console cfd n03 --follow=false
  muster console cfd n03 --shell
  echo 'ip route' | muster console cfd n03 --shell
  muster console --machine local-04 --shell`,
		ValidArgsFunction: a.completeNodes,
		RunE: func(c *cobra.Command, args []string) error {
			if machine && len(args) > 1 {
				return usage(c, "%q is one argument too many: a machine is named alone", args[1])
			}
			k, err := a.connect()
			if err != nil {
				return err
			}
			conn, err := openConsole(c.Context(), k, args, machine, shell)
			if err != nil {
				return err
			}
			defer conn.Close()
			defer context.AfterFunc(c.Context(), func() { conn.Close() })()
			if shell {
				err = a.consoleShell(conn)
			} else {
				err = readConsole(a.env.Out, conn, follow)
			}
			if c.Context().Err() != nil || errors.Is(err, net.ErrClosed) {
				return nil
			}
			return err
		},
	}
	c.Flags().BoolVar(&shell, "shell", false, "open a root shell")
	c.Flags().BoolVarP(&follow, "follow", "f", true, "keep showing new output")
	c.Flags().BoolVar(&machine, "machine", false, "treat the name as a machine (administrators only)")
	return c
}

// openConsole opens what the arguments name. One alone is a cluster, whose
// head is meant, or a machine where no cluster is called so. Where an
// administrator could mean either, neither is opened.
func openConsole(ctx context.Context, k *client.Client, args []string, machine, shell bool) (*client.Console, error) {
	switch {
	case machine:
		return k.MachineConsole(ctx, muster.MachineID(args[0]), shell)
	case len(args) == 2:
		return k.NodeConsole(ctx, args[0], args[1], shell)
	}
	if err := oneConsole(ctx, k, args[0]); err != nil {
		return nil, err
	}
	conn, err := k.NodeConsole(ctx, args[0], "head", shell)
	if muster.CodeOf(err) != muster.ENotFound {
		return conn, err
	}
	conn, merr := k.MachineConsole(ctx, muster.MachineID(args[0]), shell)
	if muster.CodeOf(merr) == muster.EForbidden {
		return nil, err // speak of the cluster: the machine is not for them
	}
	return conn, merr
}

// oneConsole refuses a word that is a cluster and a machine to those who may
// open either.
func oneConsole(ctx context.Context, k *client.Client, word string) error {
	if _, err := k.Machine(ctx, muster.MachineID(word)); err != nil {
		return nil //nolint:nilerr // it can only be a cluster, and the rest is told there
	}
	c, err := k.Cluster(ctx, word)
	if muster.CodeOf(err) == muster.ENotFound {
		return nil
	}
	if err != nil && muster.CodeOf(err) != muster.EConflict { // of several projects
		return err
	}
	me, err := k.Server(ctx)
	if err != nil || !me.Admin {
		return err
	}
	return muster.Errorf(muster.EConflict, "%s is a machine, and a cluster too", word).Because(muster.ReasonAmbiguous).
		WithHint("say which: muster console --machine %s, or muster console %s NODE", word, first(string(c.ID), word))
}

// readConsole reports what was printed, and with follow what comes.
func readConsole(to io.Writer, conn *client.Console, follow bool) error {
	buf := make([]byte, 32<<10)
	for {
		if !follow {
			_ = conn.SetReadDeadline(time.Now().Add(consoleQuiet))
		}
		n, err := conn.Read(buf)
		// For a pipe as for a terminal: lines end as they do here.
		if _, werr := to.Write(bytes.ReplaceAll(buf[:n], []byte("\r\n"), []byte("\n"))); werr != nil {
			return nil //nolint:nilerr // who reads has gone
		}
		if err != nil {
			if errors.Is(err, io.EOF) || !follow && errors.Is(err, os.ErrDeadlineExceeded) {
				return nil
			}
			return err
		}
	}
}

// consoleShell connects the user's terminal with the shell.
func (a *app) consoleShell(conn *client.Console) error {
	in, ok := a.env.In.(*os.File)
	if ok && term.IsTerminal(int(in.Fd())) {
		before, err := term.MakeRaw(int(in.Fd()))
		if err != nil {
			return muster.Errorf(muster.EInternal, "the terminal cannot be used").Wrap(err)
		}
		defer func() { _ = term.Restore(int(in.Fd()), before) }()
		fmt.Fprint(a.env.Err, "A shell of root. Ctrl-] leaves it.\r\n")
		stop := passSize(in, conn)
		defer stop()
	} else {
		_ = conn.Size(a.env.width(a.env.Out), 24)
	}
	go func() {
		left := typed(conn, a.env.In)
		if left {
			conn.Close()
		}
	}()
	_, err := io.Copy(a.env.Out, conn)
	return err
}

// typed passes on what is typed, and reports whether the user wants to leave.
func typed(conn *client.Console, from io.Reader) (leave bool) {
	buf := make([]byte, 1024)
	for {
		n, err := from.Read(buf)
		if i := bytes.IndexByte(buf[:n], consoleEscape); i >= 0 {
			_ = conn.Type(buf[:i])
			return true
		}
		if n > 0 && conn.Type(buf[:n]) != nil {
			return true
		}
		if err != nil {
			return endInput(conn)
		}
	}
}

// endInput tells whatever reads that nothing more comes, until the shell has
// ended too: what a shell that starts, or a program before it, makes of the
// first Ctrl-D is lost to those who read later.
func endInput(conn *client.Console) (leave bool) {
	for conn.Type([]byte{endOfInput}) == nil {
		time.Sleep(endAgain)
	}
	return false
}

// passSize tells the size of the terminal now and whenever it changes.
func passSize(in *os.File, conn *client.Console) (stop func()) {
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, syscall.SIGWINCH)
	over := make(chan struct{})
	go func() {
		for {
			if columns, rows, err := term.GetSize(int(in.Fd())); err == nil {
				_ = conn.Size(columns, rows)
			}
			select {
			case <-changed:
			case <-over:
				return
			}
		}
	}()
	return func() {
		signal.Stop(changed)
		close(over)
	}
}
