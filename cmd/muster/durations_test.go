package main

import (
	"testing"

	"github.com/muster-hpc/muster/cli"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Every flag that takes a length of time takes days, weeks and fractions.
func TestDurationsMayBeDays(t *testing.T) {
	t.Parallel()
	seen := 0
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Value.Type() != "duration" {
				return
			}
			seen++
			for _, text := range []string{"90s", "2d", "1w", "1w2d12h", "1.5h"} {
				if err := f.Value.Set(text); err != nil {
					t.Errorf("%s --%s %s: %v", c.CommandPath(), f.Name, text, err)
				}
			}
		})
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(cli.New(environment(nil)))
	if seen < 20 {
		t.Errorf("only %d flags were found", seen)
	}
}
