package cli_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/muster-hpc/muster/cli"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const reference = "../docs/cli.md"

// The reference part of docs/cli.md is what the commands say of themselves.
// MUSTER_UPDATE=1 writes it anew.
func TestReferenceIsTrue(t *testing.T) {
	t.Parallel()
	const begin, end = "<!-- reference -->\n", "<!-- end of reference -->\n"
	was, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(was), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatal("docs/cli.md has no marks of the reference")
	}
	var b strings.Builder
	describeCommand(&b, cli.New(cli.Env{Out: os.Stdout, Err: os.Stderr}))
	now := before + begin + b.String() + end + after
	if os.Getenv("MUSTER_UPDATE") != "" {
		if err := os.WriteFile(reference, []byte(now), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if now != string(was) {
		t.Fatal("docs/cli.md is not what the commands are now: MUSTER_UPDATE=1 go test ./cli")
	}
}

func describeCommand(b *strings.Builder, c *cobra.Command) {
	if c.Hidden || c.Name() == "help" || c.Name() == "completion" {
		return
	}
	if c.HasParent() && !c.HasSubCommands() {
		fmt.Fprintf(b, "\n### %s\n\n", c.CommandPath())
		text := c.Long
		if text == "" {
			text = c.Short + "."
		}
		fmt.Fprintf(b, "%s\n\n```\n%s\n\n%s\n```\n", text, c.UseLine(), c.Example)
		var rows strings.Builder
		c.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			if f.Name == "help" {
				return
			}
			name := "--" + f.Name
			if f.Shorthand != "" {
				name = "-" + f.Shorthand + ", " + name
			}
			fmt.Fprintf(&rows, "| `%s` | %s |\n", name, strings.ReplaceAll(f.Usage, "|", `\|`))
		})
		if rows.Len() > 0 {
			fmt.Fprintf(b, "\n| flag | meaning |\n|---|---|\n%s", rows.String())
		}
	}
	for _, sub := range c.Commands() {
		describeCommand(b, sub)
	}
}
