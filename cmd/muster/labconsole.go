package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/cli"
)

// labEscape leaves a console: Ctrl-].
const labEscape = 0x1d

func labConsole(of labOf) *cobra.Command {
	follow := true
	c := &cobra.Command{
		Use: "console MACHINE", Short: "Connect to the serial console of a lab machine", Args: cli.Exactly("MACHINE"),
		Long: `Shows the output of a machine's serial console from the firmware on, and keeps showing
new output, also across power cycles. Input is sent to the machine. Ctrl-] ends it.`,
		Example: `  sudo muster lab console m01
  sudo muster lab console m01 --follow=false`,
		ValidArgsFunction: completeLab(of, 1),
		RunE: func(c *cobra.Command, args []string) error {
			l, err := of()
			if err != nil {
				return err
			}
			file, socket, err := l.Console(args[0])
			if err != nil {
				return err
			}
			if !follow {
				return printed(c.OutOrStdout(), file)
			}
			ctx, cancel := context.WithCancel(c.Context())
			defer cancel()
			if in, ok := c.InOrStdin().(*os.File); ok && term.IsTerminal(int(in.Fd())) {
				before, err := term.MakeRaw(int(in.Fd()))
				if err != nil {
					return muster.Errorf(muster.EInternal, "the terminal cannot be used").Wrap(err)
				}
				defer func() { _ = term.Restore(int(in.Fd()), before) }()
				fmt.Fprint(c.ErrOrStderr(), "Ctrl-] leaves the console.\r\n")
			}
			go typeInto(ctx, cancel, c.InOrStdin(), socket)
			return following(ctx, c.OutOrStdout(), file)
		},
	}
	c.Flags().BoolVarP(&follow, "follow", "f", true, "keep showing new output")
	return c
}

// printed copies what was printed so far; nothing, of a machine that was never on.
func printed(to io.Writer, path string) error {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(to, f)
	return err
}

// following copies a file as it grows, and begins again when another has taken its
// place, until ctx ends.
func following(ctx context.Context, to io.Writer, path string) error {
	var f *os.File
	defer func() {
		if f != nil {
			f.Close()
		}
	}()
	for {
		if f == nil {
			f, _ = os.Open(path) // until there is one
		}
		if f != nil {
			if _, err := io.Copy(to, f); err != nil {
				return nil // who reads has gone
			}
			if held, err := f.Stat(); err == nil {
				if now, err := os.Stat(path); err == nil && !os.SameFile(held, now) {
					f.Close()
					f = nil
					continue
				}
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(labLook):
		}
	}
}

// typeInto passes what is typed to the machine, while it is on. The escape, and
// nothing else, calls leave: whoever pipes something in may want to read on.
func typeInto(ctx context.Context, leave func(), from io.Reader, socket string) {
	var conn net.Conn
	defer func() {
		if conn != nil {
			conn.Close()
		}
	}()
	buf := make([]byte, 1024)
	for {
		n, err := from.Read(buf)
		text := buf[:n]
		i := bytes.IndexByte(text, labEscape)
		if i >= 0 {
			text = text[:i]
		}
		if len(text) > 0 {
			conn = typed(ctx, conn, socket, text)
		}
		if i >= 0 {
			leave()
			return
		}
		if err != nil {
			return
		}
	}
}

// typed writes to the console's socket, which is another one after each start.
func typed(ctx context.Context, conn net.Conn, socket string, text []byte) net.Conn {
	for range 2 {
		if conn == nil {
			c, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
			if err != nil {
				return nil // it is off: what is typed is lost, as it is there
			}
			conn = c
			go func() { _, _ = io.Copy(io.Discard, c) }() // it is in the file, too
		}
		if _, err := conn.Write(text); err == nil {
			return conn
		}
		conn.Close()
		conn = nil
	}
	return nil
}
