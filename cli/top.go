package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/api/client"
	"github.com/muster-hpc/muster/internal/duration"
	"github.com/muster-hpc/muster/wire"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// shortestEvery bounds how often top asks.
const shortestEvery = 500 * time.Millisecond

func (a *app) top() *cobra.Command {
	var once bool
	var every time.Duration
	var sortBy string
	c := &cobra.Command{
		Use: "top [CLUSTER]", Short: "Watch clusters, nodes and jobs", Args: atMost(1),
		Long: `Shows what clusters are doing: nodes up and down, busy cores, memory, jobs, users and
time left; with CLUSTER, its nodes and jobs. On a terminal it refreshes until you press
q; the keys n, c, m, j and t sort by name, busy cores, memory, jobs and time left.
Otherwise, or with --once, it prints once.`,
		Example: `  muster top
  muster top cfd
  muster top --once -o json`,
		ValidArgsFunction: a.completeClusters(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.checkOutput(); err != nil {
				return err
			}
			key, ok := topKey(sortBy)
			if !ok {
				return muster.Errorf(muster.EInvalid, "--sort cannot be %q", sortBy).Because(muster.ReasonBadValue).WithHint("write name, cores, memory, jobs or time")
			}
			if every < shortestEvery {
				return muster.Errorf(muster.EInvalid, "--interval is too short").Because(muster.ReasonOutOfRange).WithHint("write 500ms or longer")
			}
			k, err := a.connect()
			if err != nil {
				return err
			}
			t := &topScreen{app: a, client: k, every: every, key: key}
			if len(args) > 0 {
				t.ref = args[0]
			}
			if once || a.output != "" || !a.env.terminal(a.env.Out) {
				top, err := k.Top(c.Context(), t.ref)
				if err != nil {
					return err
				}
				return a.print(top, func(w io.Writer) { t.page(w, top) })
			}
			return t.run(c.Context())
		},
	}
	c.Flags().BoolVar(&once, "once", false, "print once and exit")
	duration.Var(c.Flags(), &every, "interval", 2*time.Second, "refresh interval")
	c.Flags().StringVar(&sortBy, "sort", "name", "sort by name, cores, memory, jobs or time")
	_ = c.RegisterFlagCompletionFunc("sort", cobra.FixedCompletions([]string{"name", "cores", "memory", "jobs", "time"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

func topKey(name string) (byte, bool) {
	key, ok := map[string]byte{"name": 'n', "cores": 'c', "memory": 'm', "jobs": 'j', "time": 't'}[name]
	return key, ok
}

// topScreen fills a terminal until somebody presses q.
type topScreen struct {
	app    *app
	client *client.Client
	ref    string
	every  time.Duration
	key    byte // sort key

	last  wire.Top
	fault error // of the last look
}

// Sequences of a terminal: its other screen without a cursor, and back.
const (
	otherScreen = "\x1b[?1049h\x1b[?25l"
	ownScreen   = "\x1b[?25h\x1b[?1049l"
)

func (t *topScreen) run(ctx context.Context) error {
	first, err := t.client.Top(ctx, t.ref) // what is wrong is told on the ordinary screen
	if err != nil {
		return err
	}
	t.last = first
	if len(first.Clusters) == 1 && t.ref != "" {
		t.ref = string(first.Clusters[0].ID) // its name may be given to another
	}
	keys := make(chan byte, 16)
	if in, ok := t.app.env.In.(*os.File); ok && term.IsTerminal(int(in.Fd())) {
		old, err := term.MakeRaw(int(in.Fd()))
		if err == nil {
			defer func() { _ = term.Restore(int(in.Fd()), old) }()
			go readKeys(in, keys)
		}
	}
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	defer signal.Stop(resized)
	out := t.app.env.Out
	fmt.Fprint(out, otherScreen)
	defer fmt.Fprint(out, ownScreen)
	tick := time.NewTicker(t.every)
	defer tick.Stop()
	for {
		if err := t.draw(); err != nil {
			return nil // the terminal has gone
		}
		select {
		case <-ctx.Done():
			return nil
		case <-resized:
		case key := <-keys:
			switch key {
			case 'q', 'Q', 3, 4: // and Ctrl-C, Ctrl-D
				return nil
			case 'n', 'c', 'm', 'j', 't':
				t.key = key
			}
		case <-tick.C:
			top, err := t.client.Top(ctx, t.ref)
			switch code := muster.CodeOf(err); {
			case err == nil:
				t.last = top
			case code == muster.ENotFound || code == muster.EUnauth || code == muster.EForbidden:
				return err
			}
			t.fault = err
		}
	}
}

func readKeys(in io.Reader, keys chan<- byte) {
	var b [1]byte
	for {
		n, err := in.Read(b[:])
		if err != nil {
			return
		}
		if n == 1 {
			select {
			case keys <- b[0]:
			default:
			}
		}
	}
}

// draw fits the page into the terminal as it is now.
func (t *topScreen) draw() error {
	width, height := 80, 24
	if f, ok := t.app.env.Out.(*os.File); ok {
		if w, h, err := term.GetSize(int(f.Fd())); err == nil && w > 0 && h > 0 {
			width, height = w, h
		}
	}
	var page strings.Builder
	t.page(&page, t.last)
	lines := strings.Split(strings.TrimRight(page.String(), "\n"), "\n")
	foot := "q quits; sort by n name, c cores, m memory, j jobs, t time left"
	if t.fault != nil {
		foot = "the server does not answer; this is from " + stamp(t.last.At)
	}
	var b strings.Builder
	b.WriteString("\x1b[H")
	for i := range height - 1 {
		if i < len(lines) {
			b.WriteString(cut(lines[i], width))
		}
		b.WriteString("\x1b[K\r\n")
	}
	b.WriteString("\x1b[7m" + cut(foot, width) + "\x1b[0m\x1b[K")
	_, err := io.WriteString(t.app.env.Out, b.String())
	return err
}

// cut keeps so many characters of a line.
func cut(line string, width int) string {
	n := 0
	for i := range line {
		if n == width {
			return line[:i]
		}
		n++
	}
	return line
}
