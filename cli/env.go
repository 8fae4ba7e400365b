package cli

import (
	"context"
	"io"
	"io/fs"
	"os"

	"github.com/muster-hpc/muster/api/client"
	"github.com/muster-hpc/muster/vm/host"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// Env is the world that the commands live in. Tests give their own.
type Env struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer
	// Getenv reads an environment variable.
	Getenv func(string) string
	// IsTerminal reports whether a stream is a terminal. Nil: it is looked up.
	IsTerminal func(stream any) bool
	// Extra are commands that others bring (serve).
	Extra   []*cobra.Command
	Version string
	// ServeGateway runs a gateway until ctx ends and its sessions have. Nil: this program has none.
	ServeGateway func(ctx context.Context, k *client.Client, o GatewayOptions) error
	// Executable is the path of this program, for commands that ssh runs.
	// Empty: it is looked up.
	Executable string
	// Recipes are shelves of image recipes that stand after the ones in the
	// file system.
	Recipes []fs.FS
	// Doctor are the checks of the host.
	Doctor []func(context.Context) []Check
	// VMHost is where 'doctor --vm' looks. Without FS: at this host.
	VMHost host.Source
	// Install installs Debian packages. Nil: with apt-get.
	Install func(ctx context.Context, out io.Writer, packages []string) error
}

// Check is one thing that doctor looked at.
type Check struct {
	Name    string `json:"name"`
	OK      bool   `json:"ok"`
	Level   string `json:"level,omitempty"` // error, warning; of a check that is not OK
	Text    string `json:"text,omitempty"`  // what was found
	Fix     string `json:"fix,omitempty"`   // what to do
	Package string `json:"package,omitempty"`
}

// SystemEnv is the world of an ordinary process.
func SystemEnv() Env {
	return Env{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv}
}

func (e *Env) terminal(stream any) bool {
	if e.IsTerminal != nil {
		return e.IsTerminal(stream)
	}
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// width is how many characters a line of a terminal has; 80 where that cannot
// be told.
func (e *Env) width(stream any) int {
	if f, ok := stream.(*os.File); ok {
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 {
			return columns
		}
	}
	return 80
}

func (e *Env) getenv(name string) string {
	if e.Getenv == nil {
		return ""
	}
	return e.Getenv(name)
}
