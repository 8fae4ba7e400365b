package experiment

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/yamldoc"
	"go.yaml.in/yaml/v3"
)

// kind is how the values of a factor are written, and what they change.
type kind int

const (
	word    kind = iota // one word
	number              // a whole number from 1
	list                // arguments
	pairs               // NAME: VALUE
	request             // part of a request: another cluster
)

type factorKind struct {
	name string
	kind kind
	// words are those that there are; nil: any.
	words []string
	// block: another value needs another cluster. field is where it goes in its request.
	block bool
	field []string
}

// factorKinds are all factors, in the order of columns.
func factorKinds() []factorKind {
	return []factorKind{
		{name: "cluster", kind: request, block: true},
		{name: "image", block: true, field: []string{"image"}},
		{name: "provider", block: true, field: []string{"machine", "provider"}},
		{name: "tune", words: []string{"on", "off"}, block: true, field: []string{"vm", "tune"}},
		{name: "machine_class", block: true, field: []string{"machine", "class"}},
		{name: "shape", kind: request, block: true, field: []string{"shape"}},
		{name: "link_rate", block: true, field: []string{"link_rate"}},
		{name: "stack"},
		{name: "program"},
		{name: "class"},
		{name: "n", kind: number},
		{name: "nb", kind: number},
		{name: "grid"},
		{name: "args", kind: list},
		{name: "ranks", kind: number},
		{name: "placement", words: []string{"dense", "spread"}},
		{name: "ranks_per_node", kind: number},
		{name: "threads", kind: number},
		{name: "binding", words: []string{"none", "core", "socket"}},
		{name: "network", words: []string{"message"}}, // nodes do not reach each other by another
		{name: "transport"},
		{name: "eager_limit", kind: number},
		{name: "rendezvous"},
		{name: "mca", kind: pairs},
		{name: "env", kind: pairs},
	}
}

func factorNames() []string {
	var names []string
	for _, k := range factorKinds() {
		names = append(names, k.name)
	}
	return names
}

func factorOf(name string) factorKind {
	list := factorKinds()
	return list[slices.IndexFunc(list, func(k factorKind) bool { return k.name == name })]
}

const (
	mostValues = 1000
	mostWord   = 200
)

var (
	wordForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+,:/@^-]*$`)
	envForm  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,99}$`)
	gridForm = regexp.MustCompile(`^([1-9][0-9]{0,4})x([1-9][0-9]{0,4})$`)
)

func (r *reader) factor(name string, v *yaml.Node) Factor {
	f := Factor{Name: name, place: yamldoc.At(v)}
	path := "matrix." + name
	f.Values = r.values(path, name, v)
	if len(f.Values) == 0 {
		f.Values = []Value{{}}
		if v.Kind == yaml.SequenceNode && len(v.Content) == 0 {
			r.Wrong(muster.ReasonRequired, path, yamldoc.At(v), "give a value, or leave the factor out", "the factor has no value")
		}
	}
	for i, a := range f.Values {
		if slices.ContainsFunc(f.Values[:i], func(b Value) bool { return a.Text == b.Text }) {
			r.Wrong(muster.ReasonGivenTwice, path, yamldoc.At(v), "keep one", "%.60q stands there twice", a.Text)
			f.Values = f.Values[:1]
			break
		}
	}
	return f
}

// values reads one value, or a list of them.
func (r *reader) values(path, name string, v *yaml.Node) (out []Value) {
	items := r.items(path, v)
	k := factorOf(name)
	if len(items) > mostValues {
		r.Wrong(muster.ReasonTooMany, path, yamldoc.At(v), "give at most 1000", "there are %d values", len(items))
		return nil
	}
	if k.kind == list && v.Kind == yaml.SequenceNode && !slices.ContainsFunc(items, func(n *yaml.Node) bool { return n.Kind != yaml.ScalarNode }) {
		items = []*yaml.Node{v} // the arguments of all cells
	}
	for i, item := range items {
		at := path
		if v.Kind == yaml.SequenceNode && item != v {
			at = index(path, i)
		}
		if one, ok := r.value(at, k, item); ok {
			out = append(out, one)
		}
	}
	return out
}

// numberHint says what a number of a factor can be.
func numberHint(name string) string {
	switch name {
	case "n":
		return "write the order of HPL's matrix, from 1, such as 8000; 0 would solve nothing"
	case "threads", "ranks", "ranks_per_node":
		return "write a whole number from 1, or default for what it is without the factor"
	}
	return "write a whole number from 1"
}

func (r *reader) value(path string, k factorKind, n *yaml.Node) (Value, bool) {
	if n.Kind == yaml.ScalarNode && (n.Tag == "!!null" || n.Value == "default" && k.name != "program") {
		return Value{}, true // as it is without the factor
	}
	before := len(r.Problems)
	var v Value
	switch k.kind {
	case word:
		v.Text = r.Text(path, n)
		switch {
		case len(r.Problems) > before:
		case k.words != nil && !slices.Contains(k.words, v.Text):
			r.Bad(path, yamldoc.At(n), yamldoc.Meant(v.Text, k.words), "%.60q is no %s", v.Text, k.name)
		case k.name == "grid" && !gridForm.MatchString(v.Text):
			r.Bad(path, yamldoc.At(n), "write rows x columns: 2x4", "%.60q is not a grid", v.Text)
		case len(v.Text) > mostWord || !wordForm.MatchString(v.Text):
			r.Bad(path, yamldoc.At(n), "write one word of letters, digits and ._+,:/@^-", "%.60q cannot be a %s", v.Text, k.name)
		}
	case number:
		i, err := strconv.Atoi(r.Text(path, n))
		if len(r.Problems) == before && (err != nil || i < 1 || i > 1<<30) {
			r.Wrong(muster.ReasonOutOfRange, path, yamldoc.At(n), numberHint(k.name), "%.40q is no such number", n.Value)
		}
		v.Number, v.Text = i, strconv.Itoa(i)
	case list:
		for i, item := range r.items(path, n) {
			v.List = append(v.List, r.Text(index(path, i), item))
		}
		v.Text = strings.Join(v.List, " ")
	case pairs:
		v.Pairs, v.Text = r.pairs(path, k, n)
	case request:
		v = r.fragment(path, n)
	}
	return v, len(r.Problems) == before
}

func (r *reader) pairs(path string, k factorKind, n *yaml.Node) (map[string]string, string) {
	if n.Kind != yaml.MappingNode {
		r.Wrong(muster.ReasonWrongType, path, yamldoc.At(n), "write {NAME: VALUE}", "fields are expected")
		return nil, ""
	}
	out := map[string]string{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, value := n.Content[i].Value, r.Text(path+"."+yamldoc.Clip(n.Content[i].Value), n.Content[i+1])
		switch _, twice := out[name]; {
		case twice:
			r.Wrong(muster.ReasonGivenTwice, path+"."+yamldoc.Clip(name), yamldoc.At(n.Content[i]), "keep one", "the name is given twice")
		case !envForm.MatchString(name):
			r.Wrong(muster.ReasonBadName, path+"."+yamldoc.Clip(name), yamldoc.At(n.Content[i]), "letters, digits and underscores, at most 100", "it cannot be a name")
		case k.name == "env" && reserved(name):
			r.Wrong(muster.ReasonNameReserved, path+"."+name, yamldoc.At(n.Content[i]), "use the factors for it", "%s belongs to the scheduler or the shell", name)
		case len(value) > 4096 || strings.ContainsAny(value, "\x00\n\r"):
			r.Bad(path+"."+name, yamldoc.At(n.Content[i+1]), "write one line of at most 4096 bytes", "the value is too long, or has lines")
		}
		out[name] = value
	}
	if len(out) > 64 {
		r.Wrong(muster.ReasonTooMany, path, yamldoc.At(n), "give at most 64", "there are %d names", len(out))
	}
	var words []string
	for _, name := range slices.Sorted(maps.Keys(out)) {
		words = append(words, name+"="+out[name])
	}
	return out, strings.Join(words, " ")
}

// reserved reports whether a variable decides where the job runs, or as whom.
func reserved(name string) bool {
	return strings.HasPrefix(name, "SLURM_") || strings.HasPrefix(name, "BASH") || slices.Contains([]string{"HOME", "IFS", "SHELL", "USER"}, name)
}

// fragment is a part of a request. Its label, or else what is in it, is its text.
func (r *reader) fragment(path string, n *yaml.Node) Value {
	if n.Kind != yaml.MappingNode {
		r.Wrong(muster.ReasonWrongType, path, yamldoc.At(n), "write fields of a request: {cores: 4}", "fields are expected")
		return Value{}
	}
	tree, _ := r.tree(path, n).(map[string]any)
	v := Value{Tree: tree}
	if label, ok := tree["label"].(string); ok {
		v.Text = yamldoc.Clip(label)
		delete(tree, "label")
	} else if b, err := json.Marshal(tree); err == nil {
		v.Text = yamldoc.Clip(strings.NewReplacer(`"`, "", "{", "", "}", "").Replace(string(b)))
	}
	return v
}
