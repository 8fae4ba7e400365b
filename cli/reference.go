package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Reference is what a command and those below it say of themselves, in
// Markdown: the reference part of docs/users/cli.md.
func Reference(c *cobra.Command) string {
	var b strings.Builder
	reference(&b, c)
	return b.String()
}

func reference(b *strings.Builder, c *cobra.Command) {
	if c.Hidden {
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
			if f.Name == "help" || f.Hidden {
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
		reference(b, sub)
	}
}
