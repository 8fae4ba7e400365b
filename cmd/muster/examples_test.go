package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/muster-hpc/muster/cli"
	"github.com/spf13/cobra"
)

// Every example of every command, and every command line of README.md and docs, is one that
// the commands take: its name, its flags and their values, and how many arguments it has.
func TestExamplesAreTaken(t *testing.T) {
	t.Parallel()
	seen := 0
	aside := regexp.MustCompile(` {3,}[a-z].*$`) // what it is for, beside it
	try := func(where, line string) {
		for _, words := range musterCommands(line) {
			seen++
			if err := takes(words); err != nil {
				t.Errorf("%s: %s\n  %v", where, strings.TrimSpace(line), err)
			}
		}
	}
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		for line := range strings.Lines(strings.ReplaceAll(c.Example, "\\\n", "")) {
			try(c.CommandPath(), aside.ReplaceAllString(strings.TrimSpace(line), ""))
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(cli.New(environment(nil)))
	pages, err := filepath.Glob("../../docs/*/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(pages, "../../README.md") {
		if strings.Contains(page, "decisions") {
			continue // what was so when it was decided
		}
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		fenced, reference := false, false
		for line := range strings.Lines(strings.ReplaceAll(string(text), "\\\n", "")) {
			switch {
			case strings.HasPrefix(line, "<!-- "):
				reference = strings.HasPrefix(line, "<!-- reference")
			case strings.HasPrefix(line, "```"):
				fenced = !fenced
			case fenced && !reference && regexp.MustCompile(`^(\$ |# )?(sudo )?(bin/)?muster [a-z]`).MatchString(line):
				line = strings.TrimSpace(strings.TrimPrefix(strings.TrimPrefix(line, "$ "), "# "))
				try(page, aside.ReplaceAllString(line, ""))
			}
		}
	}
	if seen < 300 {
		t.Errorf("only %d command lines were found", seen)
	}
}

// takes parses words as the program does, up to where it would begin.
func takes(words []string) error {
	root := cli.New(environment(nil))
	c, rest, err := root.Find(words)
	if err != nil || c.DisableFlagParsing {
		return err
	}
	for i, w := range rest {
		if c.Name() == "scale" && regexp.MustCompile(`^-\d+$`).MatchString(w) {
			rest[i] = "--fewer=" + w // as the program reads it
		}
	}
	if err := c.ParseFlags(rest); err != nil {
		return err
	}
	if help, _ := c.Flags().GetBool("help"); help {
		return nil
	}
	if err := c.ValidateArgs(c.Flags().Args()); err != nil {
		return err
	}
	if err := c.ValidateRequiredFlags(); err != nil {
		return err
	}
	return c.ValidateFlagGroups()
}

// musterCommands are the words of each call of muster in a line of a shell.
func musterCommands(line string) (list [][]string) {
	for _, words := range simpleCommands(line) {
		for len(words) > 0 && (slices.Contains([]string{"sudo", "exec", "time", "$"}, words[0]) || regexp.MustCompile(`^[A-Z_]+=`).MatchString(words[0])) {
			words = words[1:]
		}
		if len(words) > 1 && (words[0] == "muster" || words[0] == "bin/muster") {
			list = append(list, words[1:])
		}
	}
	return list
}

// simpleCommands takes a line of a shell apart: quotes are taken off, and what is redirected,
// piped, substituted or noted begins anew or is left out.
func simpleCommands(line string) (list [][]string) {
	var words []string
	var word strings.Builder
	begun, skip := false, false // a word is being read; the next word is a file
	end := func() {
		if begun && !skip {
			words = append(words, word.String())
		}
		skip = skip && !begun
		word.Reset()
		begun = false
	}
	next := func() {
		end()
		if len(words) > 0 {
			list = append(list, words)
		}
		words, skip = nil, false
	}
	quote := rune(0)
	runes := []rune(strings.TrimSpace(line))
	for i, r := range runes {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == '\'' || quote == '"' && r != '$':
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, begun = r, true
		case r == ' ' || r == '\t':
			end()
		case r == '#' && !begun:
			next()
			return list
		case r == '|' || r == ';' || r == '&' || r == '(' || r == ')':
			if r == '(' && strings.HasSuffix(word.String(), "$") {
				words = append(words, "") // the word that it becomes
			}
			next()
			quote = 0
		case r == '<' && i+1 < len(runes) && runes[i+1] == '(':
			begun = true
		case r == '>' || r == '<':
			word.Reset()
			begun = false
			skip = true
		default:
			begun = true
			word.WriteRune(r)
		}
	}
	next()
	return list
}
