package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/muster-hpc/muster/cli"
	"github.com/spf13/cobra"
)

// named is a command line as texts name one: up to a quote, a bracket or the end of a
// sentence. What precedes says that it is none: a file, an option, a name.
var named = regexp.MustCompile("(?:^|[^-/.\\w])muster ([a-z][\\w-]*[^`'\"(),;:\n]*)")

// prose are words that follow the program's name where no command is meant.
var prose = regexp.MustCompile(`^(that wrote|wrote it|exits with|node$|authority )|\x00`)

// What a text of the program tells people to do can be done: each command that it names is
// there, with the flags that it names.
func TestHintsCanBeFollowed(t *testing.T) {
	t.Parallel()
	root := cli.New(environment(nil))
	seen := 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && len(d.Name()) > 2 || d.Name() == "testdata" || d.Name() == "bin") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			l, ok := n.(*ast.BasicLit)
			if !ok || l.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(l.Value)
			if err != nil {
				return true
			}
			for _, m := range named.FindAllStringSubmatch(text, -1) {
				if prose.MatchString(m[1]) {
					continue
				}
				ok, wrong := follow(root, m[1])
				if wrong != "" {
					t.Errorf("%s: %s: %q", set.Position(l.Pos()), wrong, "muster "+m[1])
				}
				if ok {
					seen++
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 150 {
		t.Errorf("only %d commands were found", seen)
	}
}

// follow reports whether a text is a command line, and what of it is not there.
func follow(root *cobra.Command, line string) (is bool, wrong string) {
	words := strings.Fields(line)
	c, at := root, 0
	for ; at < len(words); at++ {
		next := child(c, strings.TrimRight(words[at], "."))
		if next == nil {
			break
		}
		c = next
	}
	if at == 0 {
		return false, "there is no such command"
	}
	if c.HasSubCommands() && at < len(words) && strings.HasPrefix(words[at], "%") {
		return true, "" // which of them is filled in
	}
	if c.HasSubCommands() && !c.Runnable() && at < len(words) && !strings.HasPrefix(words[at], "-") {
		return true, "it has no such command"
	}
	for _, w := range words[at:] {
		name, ok := strings.CutPrefix(w, "--")
		name, _, _ = strings.Cut(strings.TrimRight(name, ".]?"), "=")
		if !ok || name == "" || name == "help" {
			if w == "--" {
				break
			}
			continue
		}
		if c.Flags().Lookup(name) == nil && c.PersistentFlags().Lookup(name) == nil && c.InheritedFlags().Lookup(name) == nil {
			return true, "it has no flag --" + name
		}
	}
	return true, ""
}

func child(c *cobra.Command, name string) *cobra.Command {
	for _, sub := range c.Commands() {
		if sub.Name() == name || sub.HasAlias(name) {
			return sub
		}
	}
	return nil
}
