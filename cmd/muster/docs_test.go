package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/muster-hpc/muster/cli"
	"github.com/spf13/cobra"
)

// What docs/users/cli.md says of the commands that only this program has is what they
// say of themselves, and it leaves no command out. MUSTER_UPDATE=1 writes it
// anew.
func TestReferenceIsTrue(t *testing.T) {
	t.Parallel()
	const file, begin, end = "../../docs/users/cli.md", "<!-- reference of the host -->\n", "<!-- end of the host's reference -->\n"
	was, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(was), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatal("docs/users/cli.md has no marks of the reference")
	}
	env := environment(nil)
	root := cli.New(env)
	text := ""
	for _, c := range env.Extra {
		text += cli.Reference(c)
	}
	now := before + begin + text + end + after
	for line := range strings.Lines(cli.Reference(root)) {
		if strings.HasPrefix(line, "### ") && !strings.Contains(now, line) {
			t.Errorf("docs/users/cli.md lacks %q: MUSTER_UPDATE=1 go test ./cli", strings.TrimSpace(line))
		}
	}
	switch {
	case os.Getenv("MUSTER_UPDATE") != "":
		if err := os.WriteFile(file, []byte(now), 0o644); err != nil {
			t.Fatal(err)
		}
	case now != string(was):
		t.Error("docs/users/cli.md is not what the commands are now: MUSTER_UPDATE=1 go test ./cmd/muster -run Reference")
	}
}

// Every command of this program has an example, and what examples name exists:
// commands and their flags.
func TestExamplesAreCommands(t *testing.T) {
	t.Parallel()
	root := cli.New(environment(nil))
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Example == "" {
			t.Errorf("%s has no example", c.CommandPath())
		}
		for line := range strings.Lines(c.Example) {
			checkExample(t, root, c, line)
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(root)
}

var quotedWord = regexp.MustCompile(`(^|[ =])'[^']*'`)

// checkExample looks at what follows the word muster in a line.
func checkExample(t *testing.T, root, of *cobra.Command, line string) {
	_, rest, ok := strings.Cut(line, "muster ")
	if !ok || strings.HasPrefix(strings.TrimSpace(line), "#") {
		return
	}
	// What stands in quotes is one word, whatever it holds.
	rest = quotedWord.ReplaceAllString(rest, "${1}TEXT")
	words := strings.Fields(rest)
	for i, w := range words {
		if w == "--" || w == "|" || strings.HasPrefix(w, "#") {
			words = words[:i]
			break
		}
		words[i] = strings.Trim(w, `()"'`)
		if strings.HasSuffix(w, ")") || strings.HasSuffix(w, "'") && !strings.HasPrefix(w, "'") {
			words = words[:i+1] // the end of $(muster ...) or 'muster ...'
			break
		}
	}
	c, left, err := root.Find(words)
	if err != nil || c == root || c.HasSubCommands() && !c.Runnable() && len(left) > 0 {
		t.Errorf("%s: no such command: %s", of.CommandPath(), strings.TrimSpace(line))
		return
	}
	for _, w := range left {
		name, _, _ := strings.Cut(strings.TrimPrefix(w, "--"), "=")
		switch {
		case strings.HasPrefix(w, "--"):
			if c.Flag(name) == nil && name != "help" {
				t.Errorf("%s: no flag %s in %s", of.CommandPath(), w, strings.TrimSpace(line))
			}
		case len(w) == 2 && w[0] == '-' && w[1] >= 'a' && w[1] <= 'z':
			if c.Flags().ShorthandLookup(w[1:]) == nil && c.InheritedFlags().ShorthandLookup(w[1:]) == nil {
				t.Errorf("%s: no flag %s in %s", of.CommandPath(), w, strings.TrimSpace(line))
			}
		}
	}
}
