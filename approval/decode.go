package approval

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/nearest"
	"go.yaml.in/yaml/v3"
)

// Limits of a file.
const (
	maxBytes    = 4 << 20
	maxRules    = 1000
	maxSerials  = 100_000 // of one rule
	maxProblems = 50      // told at once
)

// Decode reads a file of rules: YAML, "rules:" and a list of them. read reads the files
// that it names: lists of serial numbers, one on a line, and passwords. The error is
// EInvalid with all that is wrong.
func Decode(name string, data []byte, read func(path string) ([]byte, error)) (Rules, error) {
	if len(data) > maxBytes {
		return nil, muster.Errorf(muster.EInvalid, "%s is larger than %d MiB", name, maxBytes>>20).WithHint("put serial numbers into files of their own: serial-list")
	}
	f := file{read: read}
	f.yaml(data)
	if len(f.problems) > 0 {
		e := muster.Errorf(muster.EInvalid, "%s cannot be taken", name).WithHint("put right what is listed")
		e.Problems = f.problems[:min(len(f.problems), maxProblems)]
		return nil, e
	}
	return f.rules, nil
}

// file gathers what is read, and what is wrong with it.
type file struct {
	read     func(path string) ([]byte, error)
	rules    Rules
	problems []muster.Problem
}

func (f *file) bad(field, place, hint, format string, args ...any) {
	f.problems = append(f.problems, muster.Problem{Field: field, Place: place, Message: fmt.Sprintf(format, args...), Hint: hint})
}

func (f *file) yaml(data []byte) {
	const see = "see docs/machines.md for an example"
	// The parser is other people's code fed with outside bytes.
	defer func() {
		if recover() != nil {
			f.bad("file", "", see, "it is not valid YAML")
		}
	}()
	d := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	if err := d.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			f.bad("rules", "", see, "there is no rule in it")
			return
		}
		f.bad("file", "", see, "it is not valid YAML: %s", clip(strings.TrimPrefix(err.Error(), "yaml: ")))
		return
	}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		f.bad("file", "", "put all rules into one list", "there is more than one document in it")
		return
	}
	var list *yaml.Node
	f.fields(doc.Content[0], "", []string{"rules"}, func(_ string, v *yaml.Node) { list = v })
	switch {
	case list == nil && len(f.problems) > 0:
		return
	case list == nil || list.Kind == yaml.SequenceNode && len(list.Content) == 0:
		f.bad("rules", "", see, "there is no rule in it")
		return
	case list.Kind != yaml.SequenceNode:
		f.bad("rules", at(list), "begin each rule with a dash", "a list of rules is expected")
		return
	case len(list.Content) > maxRules:
		f.bad("rules", at(list), fmt.Sprintf("at most %d", maxRules), "there are too many rules")
		return
	}
	names := map[string]string{}
	for i, n := range list.Content {
		f.rule(fmt.Sprintf("rules[%d]", i), n, names)
	}
}

func (f *file) rule(path string, n *yaml.Node, names map[string]string) {
	var r Rule
	var match, then *yaml.Node
	f.fields(n, path+".", []string{"name", "match", "then"}, func(name string, v *yaml.Node) {
		switch name {
		case "name":
			r.Name = f.text(path+".name", v)
		case "match":
			match = v
		case "then":
			then = v
		}
	})
	switch first, twice := names[r.Name]; {
	case r.Name == "" || len(r.Name) > 64 || strings.ContainsFunc(r.Name, func(c rune) bool { return c < ' ' || c == 0x7f }):
		f.bad(path+".name", at(n), "its name is what the audit tells", "a rule needs a name of at most 64 characters")
	case twice:
		f.bad(path+".name", at(n), "give each rule a name of its own", "the rule at %s has this name, too", first)
	default:
		names[r.Name] = at(n)
	}
	if match == nil {
		f.bad(path+".match", at(n), `to match every machine, write match: {mac: "*"}`, "a rule must say which machines it is for")
	} else {
		r.Match = f.match(path+".match", match)
	}
	if then == nil {
		f.bad(path+".then", at(n), "write then: {state: approved}", "a rule must say what becomes of machines")
	} else {
		r.Then = f.then(path+".then", then)
	}
	f.rules = append(f.rules, r)
}

func at(n *yaml.Node) string { return fmt.Sprintf("line %d", n.Line) }

// fields calls each for the fields of a map.
func (f *file) fields(n *yaml.Node, path string, known []string, each func(name string, v *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		f.bad(strings.TrimSuffix(path, "."), at(n), "fields are: "+strings.Join(known, ", "), "fields are expected")
		return
	}
	var seen []string
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, v := n.Content[i].Value, n.Content[i+1]
		switch {
		case !slices.Contains(known, name):
			f.bad(clip(path+name), at(n.Content[i]), meant(name, known), "there is no such field")
		case slices.Contains(seen, name):
			f.bad(path+name, at(n.Content[i]), "keep one", "the field is given twice")
		default:
			each(name, v)
		}
		seen = append(seen, name)
	}
}

// meant says which known word a word was probably meant to be.
func meant(word string, known []string) string {
	if near := nearest.Of(word, known); near != "" {
		return "did you mean " + near + "?"
	}
	return "there are: " + strings.Join(known, ", ")
}

// text is a scalar's.
func (f *file) text(path string, n *yaml.Node) string {
	if n.Kind != yaml.ScalarNode {
		f.bad(path, at(n), "write one value", "a text is expected")
		return ""
	}
	if n.Tag == "!!null" {
		return ""
	}
	return strings.TrimSpace(n.Value)
}

// clip bounds what is quoted of a file.
func clip(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:60]) + "..."
	}
	return s
}
