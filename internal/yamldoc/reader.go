// Package yamldoc reads files that people write in YAML, field by field, and gathers
// everything that is wrong with them, each with its line and its cure.
package yamldoc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/suggest"
	"go.yaml.in/yaml/v3"
)

// Reader gathers what is wrong. The zero value is ready.
type Reader struct{ Problems []muster.Problem }

// Bad reports something wrong: in a field, at a place in the file ("" where it has
// none), with what to do about it. Its reason is that the value is bad.
func (r *Reader) Bad(field, place, hint, format string, args ...any) {
	r.Wrong(muster.ReasonBadValue, field, place, hint, format, args...)
}

// Wrong is Bad for another reason.
func (r *Reader) Wrong(why muster.Reason, field, place, hint, format string, args ...any) {
	r.Problems = append(r.Problems, muster.Problem{Field: field, Place: place, Reason: why, Message: fmt.Sprintf(format, args...), Hint: hint})
}

// Unknown reports a field that there is not, by its whole path.
func (r *Reader) Unknown(field, place string, known []string) {
	r.Problems = append(r.Problems, muster.Problem{Field: Clip(field), Place: place, Reason: muster.ReasonUnknownField,
		Message: "there is no such field", Hint: Meant(field[strings.LastIndex(field, ".")+1:], known)})
}

// Meant says which known word a word was probably meant to be.
func Meant(word string, known []string) string {
	if near := suggest.Of(word, known); near != "" {
		return "did you mean " + near + "?"
	}
	return "there are: " + strings.Join(known, ", ")
}

// Parse returns what a file of one document has at its top; nil if it is empty, or if
// something is wrong, which is told then. see says where an example is, one how to do
// with one document.
func (r *Reader) Parse(data []byte, see, one string) (top *yaml.Node) {
	// The parser is other people's code fed with outside bytes.
	defer func() {
		if recover() != nil {
			r.Wrong(muster.ReasonBadSyntax, "file", "", see, "it is not valid YAML")
			top = nil
		}
	}()
	d := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	if err := d.Decode(&doc); err != nil {
		if !errors.Is(err, io.EOF) {
			r.Wrong(muster.ReasonBadSyntax, "file", "", see, "it is not valid YAML: %s", Clip(strings.TrimPrefix(err.Error(), "yaml: ")))
		}
		return nil
	}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		r.Wrong(muster.ReasonBadSyntax, "file", "", one, "there is more than one document in it")
		return nil
	}
	return doc.Content[0]
}

// Fields calls each for the fields of a mapping that are known, once each. path is that
// of the mapping with a dot behind it; "" at the top.
func (r *Reader) Fields(n *yaml.Node, path string, known []string, each func(name string, v *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		r.Wrong(muster.ReasonWrongType, strings.TrimSuffix(path, "."), At(n), "fields are: "+strings.Join(known, ", "), "fields are expected")
		return
	}
	var seen []string
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, v := n.Content[i].Value, n.Content[i+1]
		switch {
		case !slices.Contains(known, name):
			r.Unknown(path+name, At(n.Content[i]), known)
		case slices.Contains(seen, name):
			r.Wrong(muster.ReasonGivenTwice, path+name, At(n.Content[i]), "keep one", "the field is given twice")
		default:
			each(name, v)
		}
		seen = append(seen, name)
	}
}

// Text is a scalar's, without the space around it; "" for null. Aliases and the like
// are no texts.
func (r *Reader) Text(path string, n *yaml.Node) string {
	if n.Kind != yaml.ScalarNode {
		r.Wrong(muster.ReasonWrongType, path, At(n), "write one value", "a text is expected")
		return ""
	}
	if n.Tag == "!!null" {
		return ""
	}
	return strings.TrimSpace(n.Value)
}

// At is where something stands in its file.
func At(n *yaml.Node) string { return fmt.Sprintf("line %d, column %d", n.Line, n.Column) }

// Clip bounds what is quoted of a file.
func Clip(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:60]) + "..."
	}
	return s
}
