package enrollment

import (
	"fmt"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/yamldoc"
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
		return nil, muster.Errorf(muster.EInvalid, "%s is larger than %d MiB", name, maxBytes>>20).Because(muster.ReasonTooLarge).WithHint("put serial numbers into files of their own: serial-list")
	}
	f := file{read: read}
	f.yaml(data)
	if len(f.Problems) > 0 {
		e := muster.Errorf(muster.EInvalid, "%s cannot be taken", name).Because(muster.ReasonHasProblems).WithHint("fix the listed errors")
		return nil, e.Listing(f.Problems[:min(len(f.Problems), maxProblems)])
	}
	return f.rules, nil
}

// file gathers what is read, and what is wrong with it.
type file struct {
	yamldoc.Reader
	read  func(path string) ([]byte, error)
	rules Rules
}

func (f *file) yaml(data []byte) {
	const see = "see docs/operators/machines.md for an example"
	top := f.Parse(data, see, "put all rules into one list")
	var list *yaml.Node
	if top != nil {
		f.Fields(top, "", []string{"rules"}, func(_ string, v *yaml.Node) { list = v })
	}
	switch {
	case list == nil && len(f.Problems) > 0:
		return
	case list == nil || list.Kind == yaml.SequenceNode && len(list.Content) == 0:
		f.Wrong(muster.ReasonRequired, "rules", "", see, "it contains no rules")
		return
	case list.Kind != yaml.SequenceNode:
		f.Wrong(muster.ReasonWrongType, "rules", yamldoc.At(list), "begin each rule with a dash", "a list of rules is expected")
		return
	case len(list.Content) > maxRules:
		f.Wrong(muster.ReasonTooMany, "rules", yamldoc.At(list), fmt.Sprintf("at most %d", maxRules), "there are too many rules")
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
	f.Fields(n, path+".", []string{"name", "match", "then"}, func(name string, v *yaml.Node) {
		switch name {
		case "name":
			r.Name = f.Text(path+".name", v)
		case "match":
			match = v
		case "then":
			then = v
		}
	})
	switch first, twice := names[r.Name]; {
	case r.Name == "" || len(r.Name) > 64 || strings.ContainsFunc(r.Name, func(c rune) bool { return c < ' ' || c == 0x7f }):
		f.Wrong(muster.ReasonBadName, path+".name", yamldoc.At(n), "the name appears in the audit log", "a rule needs a name of at most 64 characters")
	case twice:
		f.Wrong(muster.ReasonGivenTwice, path+".name", yamldoc.At(n), "give each rule a name of its own", "the rule at %s has this name, too", first)
	default:
		names[r.Name] = yamldoc.At(n)
	}
	if match == nil {
		f.Wrong(muster.ReasonRequired, path+".match", yamldoc.At(n), `to match every machine, write match: {mac: "*"}`, "a rule must say which machines it is for")
	} else {
		r.Match = f.match(path+".match", match)
	}
	if then == nil {
		f.Wrong(muster.ReasonRequired, path+".then", yamldoc.At(n), "write then: {state: approved}", "a rule must say what becomes of machines")
	} else {
		r.Then = f.then(path+".then", then)
	}
	f.rules = append(f.rules, r)
}
