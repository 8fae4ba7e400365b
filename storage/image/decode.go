package image

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"

	muster "github.com/muster-hpc/muster"
)

// Decode reads a recipe file. Every fault is reported at once, with its field
// and place: unknown and repeated fields, wrong types, anchors and aliases.
// origin names the file in messages. The result still has its Extends; see
// Load.
func Decode(origin string, data []byte) (*Recipe, error) {
	r := &reader{}
	root := r.parse(data)
	rec := &Recipe{set: map[string]bool{}}
	if root != nil {
		r.recipe(root, rec)
	}
	if len(r.problems) == 0 {
		r.problems = check(rec)
	}
	if len(r.problems) > 0 {
		return nil, refuse(origin, r.problems)
	}
	return rec, nil
}

// refuse turns problems into the one error that people see.
func refuse(origin string, problems []muster.Problem) error {
	what := "a problem"
	if len(problems) > 1 {
		what = fmt.Sprintf("%d problems", len(problems))
	}
	e := muster.Errorf(muster.EInvalid, "recipe %s has %s", origin, what).Because(muster.ReasonBadRecipe).
		WithHint("mend the recipe; docs/operators/images.md describes every field")
	return e.Listing(problems)
}

// reader walks a YAML tree and collects problems.
type reader struct {
	problems []muster.Problem
}

func (r *reader) fail(n *yaml.Node, field, hint, format string, args ...any) {
	r.because(muster.ReasonBadValue, n, field, hint, format, args...)
}

// because is fail for another reason than a bad value.
func (r *reader) because(why muster.Reason, n *yaml.Node, field, hint, format string, args ...any) {
	const enough = 50 // nobody reads more
	if len(r.problems) >= enough {
		return
	}
	p := muster.Problem{Field: field, Reason: why, Hint: hint, Message: fmt.Sprintf(format, args...)}
	if n != nil && n.Line > 0 {
		p.Place = fmt.Sprintf("line %d, column %d", n.Line, n.Column)
	}
	r.problems = append(r.problems, p)
}

// parse returns the top mapping, or nil after reporting why there is none.
func (r *reader) parse(data []byte) *yaml.Node {
	if len(data) > maxRecipeBytes {
		r.because(muster.ReasonTooLarge, nil, "", "", "the file has %d bytes; %d is the limit", len(data), maxRecipeBytes)
		return nil
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		r.because(muster.ReasonRequired, nil, "", "", "the file is empty")
		return nil
	case err != nil:
		r.because(muster.ReasonBadSyntax, nil, "", "", "not YAML: %v", err)
		return nil
	}
	if err := dec.Decode(&second); !errors.Is(err, io.EOF) {
		r.because(muster.ReasonBadSyntax, &second, "", "one file holds one recipe", "more than one document")
		return nil
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		r.fail(&doc, "", "", "not a YAML document")
		return nil
	}
	return doc.Content[0]
}

// fields gives each known key of a mapping to its function.
type fields map[string]func(n *yaml.Node, path string)

func (r *reader) mapping(n *yaml.Node, path string, known fields) {
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		r.because(muster.ReasonBadSyntax, n, path, "write the value out", "anchors and aliases are not allowed")
		return
	}
	if n.Kind != yaml.MappingNode {
		r.because(muster.ReasonWrongType, n, path, "", "must be a mapping of fields")
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		at := join(path, clip(k.Value))
		switch f := known[k.Value]; {
		case k.Kind != yaml.ScalarNode || k.Anchor != "":
			r.fail(k, path, "", "a field name must be plain text")
		case f == nil:
			names := make([]string, 0, len(known))
			for name := range known {
				names = append(names, name)
			}
			r.because(muster.ReasonUnknownField, k, at, didYouMean(k.Value, names), "unknown field")
		case seen[k.Value]:
			r.because(muster.ReasonGivenTwice, k, at, "", "given twice")
		default:
			seen[k.Value] = true
			f(v, at)
		}
	}
}

func (r *reader) list(n *yaml.Node, path string, limit int, each func(n *yaml.Node, path string)) {
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		r.because(muster.ReasonBadSyntax, n, path, "write the value out", "anchors and aliases are not allowed")
		return
	}
	if n.Kind != yaml.SequenceNode {
		r.fail(n, path, "", "must be a list")
		return
	}
	if len(n.Content) > limit {
		r.because(muster.ReasonTooMany, n, path, "", "has %d entries; %d is the limit", len(n.Content), limit)
		return
	}
	for i, c := range n.Content {
		each(c, path+"["+strconv.Itoa(i)+"]")
	}
}

// text reads a scalar that is text. Numbers and booleans must be quoted where
// text is meant: YAML would change them (0755 is 493, 1.10 is 1.1).
func (r *reader) text(n *yaml.Node, path string) string {
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		r.because(muster.ReasonBadSyntax, n, path, "write the value out", "anchors and aliases are not allowed")
	case n.Kind != yaml.ScalarNode || n.Tag != "!!str":
		r.because(muster.ReasonWrongType, n, path, "put it in quotes", "must be text")
	case len(n.Value) > maxTextBytes:
		r.fail(n, path, "", "is longer than %d bytes", maxTextBytes)
	default:
		return n.Value
	}
	return ""
}

func (r *reader) texts(n *yaml.Node, path string) []string {
	var out []string
	r.list(n, path, maxPackages, func(n *yaml.Node, path string) {
		if s := r.text(n, path); s != "" {
			out = append(out, s)
		}
	})
	return out
}

func (r *reader) boolean(n *yaml.Node, path string) bool {
	if n.Kind != yaml.ScalarNode || n.Anchor != "" || n.Tag != "!!bool" {
		r.fail(n, path, "", "must be true or false")
		return false
	}
	return slices.Contains([]string{"true", "True", "TRUE"}, n.Value)
}

func (r *reader) number(n *yaml.Node, path string) int {
	v, err := strconv.Atoi(n.Value)
	if n.Kind != yaml.ScalarNode || n.Anchor != "" || n.Tag != "!!int" || err != nil {
		r.fail(n, path, "", "must be a whole number")
		return 0
	}
	return v
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// clip keeps hostile field names from filling messages.
func clip(s string) string {
	if len(s) > 60 {
		return s[:60] + "..."
	}
	return s
}
