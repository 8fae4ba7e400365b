package experiment

import (
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/spec"
	"github.com/muster-hpc/muster/internal/yamldoc"
	"go.yaml.in/yaml/v3"
)

// MostText is how long a file may be, in bytes.
const MostText = 64 << 10

// What holds where a file says nothing.
const (
	usualMin     = 6
	usualMax     = 12
	usualTimeout = 10 * time.Minute
	mostLaunches = 1000 // of a cell
)

// File is an experiment as somebody wrote it.
type File struct {
	Name    string
	Project string
	// Seed is nil where chance decides.
	Seed *uint64
	// Cluster is one that is there; else clusters are asked for, by Request.
	Cluster string
	Request map[string]any
	Factors []Factor
	Exclude []Exclusion
	// Min and Max are launches of a cell, Within the half-width that ends it, relative.
	Min, Max int
	Within   float64
	// Budget is machine-hours; 0: none.
	Budget   float64
	Timeout  time.Duration
	Walltime time.Duration
	Discard  []muster.DiscardRule

	matrixAt string
}

// Factor is one thing that is varied, or fixed where it has one value.
type Factor struct {
	Name   string
	Values []Value
	place  string
}

// Value is one level of a factor.
type Value struct {
	// Text is the value for people and for exclusions; "" is what is usual without it.
	Text string
	// Number is set for factors that are numbers, List for arguments, Pairs for settings, Tree
	// for parts of a request.
	Number int
	List   []string
	Pairs  map[string]string
	Tree   any
}

// Exclusion leaves out the cells that match all of its factors.
type Exclusion struct {
	Match map[string][]string
	place string
}

const see = "see docs/users/experiments.md"

var nameForm = regexp.MustCompile(`^[a-z][a-z0-9-]{0,29}$`)

// Read reads a file, and reports everything that is wrong with it.
func Read(text []byte) (File, []muster.Problem) {
	f := File{Min: usualMin, Max: usualMax, Timeout: usualTimeout, Discard: []muster.DiscardRule{muster.DiscardThrottled, muster.DiscardForeignLoad}}
	r := &reader{}
	if len(text) > MostText {
		r.Wrong(muster.ReasonTooLarge, "file", "", "write at most 64 KiB", "the file has %d bytes", len(text))
		return f, r.Problems
	}
	top := r.Parse(text, see, "put each experiment into a file of its own")
	if top == nil {
		if len(r.Problems) == 0 {
			r.Wrong(muster.ReasonRequired, "file", "", see, "the file is empty")
		}
		return f, r.Problems
	}
	seen := map[string]bool{}
	r.Fields(top, "", []string{"name", "project", "seed", "cluster", "matrix", "exclude", "launches", "budget", "timeout", "walltime", "discard"}, func(name string, v *yaml.Node) {
		seen[name] = true
		r.top(&f, name, v)
	})
	if !seen["name"] {
		r.Wrong(muster.ReasonRequired, "name", "", "write name: and a word", "the name is missing")
	}
	if !seen["matrix"] {
		r.Wrong(muster.ReasonRequired, "matrix", "", "write matrix: with at least program:", "the factors are missing")
	} else if !slices.ContainsFunc(f.Factors, func(x Factor) bool { return x.Name == "program" }) {
		r.Wrong(muster.ReasonRequired, "matrix.program", f.matrixAt, "write which programs: `muster program list` lists them", "no program is named")
	}
	if f.Max < f.Min {
		f.Max = f.Min
	}
	return f, r.Problems
}

type reader struct{ yamldoc.Reader }

func (r *reader) top(f *File, name string, v *yaml.Node) {
	switch name {
	case "name":
		if f.Name = r.Text(name, v); !nameForm.MatchString(f.Name) {
			r.Wrong(muster.ReasonBadName, name, yamldoc.At(v), "small letters, digits and hyphens, at most 30, a letter first", "%.60q cannot be the name of an experiment", f.Name)
		}
	case "project":
		f.Project = r.Text(name, v)
	case "seed":
		if n, err := strconv.ParseUint(r.Text(name, v), 10, 63); err == nil {
			f.Seed = &n
		} else {
			r.Bad(name, yamldoc.At(v), "write a whole number below 2^63", "it is not a seed")
		}
	case "cluster":
		if v.Kind == yaml.MappingNode {
			f.Request, _ = r.tree(name, v).(map[string]any)
			for _, k := range []string{"name", "walltime", "project"} {
				if _, ok := f.Request[k]; ok {
					r.Wrong(muster.ReasonContradiction, "cluster."+k, yamldoc.At(v), "leave it out: the experiment sets it", "an experiment's clusters have their %s from it", k)
				}
			}
		} else if f.Cluster = r.Text(name, v); f.Cluster == "" {
			r.Wrong(muster.ReasonRequired, name, yamldoc.At(v), "name a cluster, or write fields of a request", "no cluster is named")
		}
	case "matrix":
		f.matrixAt = yamldoc.At(v)
		r.Fields(v, "matrix.", factorNames(), func(name string, v *yaml.Node) { f.Factors = append(f.Factors, r.factor(name, v)) })
		order := factorNames()
		slices.SortFunc(f.Factors, func(a, b Factor) int { return slices.Index(order, a.Name) - slices.Index(order, b.Name) })
	case "exclude":
		f.Exclude = r.exclusions(v)
	case "launches":
		r.launches(f, v)
	case "budget":
		f.Budget = r.positive(name, v, "write machine-hours: 40")
	case "timeout":
		f.Timeout = r.span(name, v)
	case "walltime":
		f.Walltime = r.span(name, v)
	case "discard":
		f.Discard = nil
		for i, item := range r.items(name, v) {
			rule := muster.DiscardRule(r.Text(index(name, i), item))
			known := []string{string(muster.DiscardThrottled), string(muster.DiscardForeignLoad)}
			switch {
			case !slices.Contains(known, string(rule)):
				r.Bad(index(name, i), yamldoc.At(item), yamldoc.Meant(string(rule), known), "there is no such rule")
			case slices.Contains(f.Discard, rule):
				r.Wrong(muster.ReasonGivenTwice, index(name, i), yamldoc.At(item), "name it once", "the rule stands there twice")
			default:
				f.Discard = append(f.Discard, rule)
			}
		}
	}
}

func index(name string, i int) string { return name + "[" + strconv.Itoa(i) + "]" }

// items are the members of a list; one value is a list of one.
func (r *reader) items(path string, v *yaml.Node) []*yaml.Node {
	if v.Kind != yaml.SequenceNode {
		return []*yaml.Node{v}
	}
	return v.Content
}

func (r *reader) launches(f *File, v *yaml.Node) {
	count := func(path string, v *yaml.Node) int {
		n, err := strconv.Atoi(r.Text(path, v))
		if err != nil || n < 1 || n > mostLaunches {
			r.Wrong(muster.ReasonOutOfRange, path, yamldoc.At(v), "write a number from 1 to 1000", "it is not a number of launches")
			return 1
		}
		return n
	}
	if v.Kind == yaml.ScalarNode {
		f.Min = count("launches", v)
		f.Max = f.Min
		return
	}
	most := false
	r.Fields(v, "launches.", []string{"min", "max", "within"}, func(name string, v *yaml.Node) {
		switch name {
		case "min":
			f.Min = count("launches.min", v)
		case "max":
			f.Max, most = count("launches.max", v), true
		case "within":
			text, percent := strings.CutSuffix(r.Text("launches.within", v), "%")
			n, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
			if err != nil || !percent || !(n > 0) || n > 100 {
				r.Bad("launches.within", yamldoc.At(v), "write the half-width in per cent: 2%", "it is not a width")
				return
			}
			f.Within = n / 100
		}
	})
	if most && f.Max < f.Min {
		r.Wrong(muster.ReasonContradiction, "launches", yamldoc.At(v), "give max at least the value of min", "at most %d launches are less than at least %d", f.Max, f.Min)
	}
	if !most {
		f.Max = max(f.Max, 2*f.Min)
	}
}

func (r *reader) positive(path string, v *yaml.Node, hint string) float64 {
	n, err := strconv.ParseFloat(r.Text(path, v), 64)
	if err != nil || !(n > 0) || n > 1e9 || math.IsNaN(n) {
		r.Wrong(muster.ReasonOutOfRange, path, yamldoc.At(v), hint, "it is not a number above 0")
		return 0
	}
	return n
}

func (r *reader) span(path string, v *yaml.Node) time.Duration {
	text := r.Text(path, v)
	d, err := spec.ParseDuration(text)
	if err != nil || d < time.Second || d > 7*24*time.Hour {
		r.Wrong(muster.ReasonOutOfRange, path, yamldoc.At(v), "write a time from 1s to 7d", "%.40q is not such a time", text)
		return time.Minute
	}
	return d
}

func (r *reader) exclusions(v *yaml.Node) (list []Exclusion) {
	if v.Kind != yaml.SequenceNode {
		r.Wrong(muster.ReasonWrongType, "exclude", yamldoc.At(v), "write a list: - {ranks: 64, placement: dense}", "a list is expected")
		return nil
	}
	if len(v.Content) > mostCells {
		r.Wrong(muster.ReasonTooMany, "exclude", yamldoc.At(v), "write values of a factor as a list", "there are %d exclusions", len(v.Content))
		return nil
	}
	for i, item := range v.Content {
		e := Exclusion{Match: map[string][]string{}, place: yamldoc.At(item)}
		path := index("exclude", i)
		r.Fields(item, path+".", factorNames(), func(name string, v *yaml.Node) {
			if v.Kind == yaml.ScalarNode && factorOf(name).kind == request { // its label
				e.Match[name] = append(e.Match[name], yamldoc.Clip(r.Text(path+"."+name, v)))
				return
			}
			for _, one := range r.values(path+"."+name, name, v) {
				e.Match[name] = append(e.Match[name], one.Text)
			}
		})
		if len(e.Match) == 0 {
			r.Wrong(muster.ReasonRequired, path, yamldoc.At(item), "name factors and their values", "it would leave out everything")
			continue
		}
		list = append(list, e)
	}
	return list
}

// tree is any value, as JSON has it: parts of requests, which are looked at elsewhere.
func (r *reader) tree(path string, n *yaml.Node) any {
	if !r.plain(path, n, 0) {
		return nil
	}
	var v any
	if err := n.Decode(&v); err != nil {
		r.Wrong(muster.ReasonBadSyntax, path, yamldoc.At(n), "write plain fields and values", "it cannot be read")
		return nil
	}
	b, err := json.Marshal(v)
	if err == nil {
		v = nil
		err = json.Unmarshal(b, &v)
	}
	if err != nil {
		r.Wrong(muster.ReasonBadSyntax, path, yamldoc.At(n), "write plain fields and values", "it cannot be read")
		return nil
	}
	return v
}

// plain reports whether a value has neither aliases nor merges, nor is too deep.
func (r *reader) plain(path string, n *yaml.Node, depth int) bool {
	if n.Kind == yaml.AliasNode || n.Anchor != "" || n.Tag == "!!merge" || depth > 8 {
		r.Wrong(muster.ReasonBadSyntax, path, yamldoc.At(n), "write it out", "aliases and deep trees are not read")
		return false
	}
	for _, c := range n.Content {
		if !r.plain(path, c, depth+1) {
			return false
		}
	}
	return true
}
