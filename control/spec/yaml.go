package spec

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/muster-hpc/muster"
	"go.yaml.in/yaml/v3"
)

// parseYAML reads one YAML document, of the plain kind: no anchors, aliases,
// merge keys or explicit tags, so that what is written is what is meant and
// nothing multiplies.
func parseYAML(data []byte) (t tree, err error) {
	// The parser is other people's code fed with outside bytes: should it
	// ever panic, that is a bad request and not the end of the server.
	defer func() {
		if r := recover(); r != nil {
			t, err = tree{}, badSyntax(Place{}, "", "not valid YAML")
		}
	}()
	d := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	switch err := d.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return tree{}, badSyntax(Place{}, "a request begins with: name: NAME", "the request is empty").because(muster.ReasonRequired)
	case err != nil:
		return tree{}, yamlSyntax(err)
	}
	var second yaml.Node
	switch err := d.Decode(&second); {
	case errors.Is(err, io.EOF):
	case err != nil:
		return tree{}, yamlSyntax(err)
	default:
		return tree{}, badSyntax(yamlPlace(&second), "send each request by itself", "more than one document in the file")
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		return tree{}, badSyntax(Place{}, "", "the request is empty").because(muster.ReasonRequired)
	}
	var b budget
	return yamlTree(&b, doc.Content[0], 1)
}

func yamlPlace(n *yaml.Node) Place { return Place{n.Line, n.Column} }

func yamlTree(b *budget, n *yaml.Node, depth int) (tree, error) {
	t := tree{place: yamlPlace(n), text: n.Value}
	if err := b.spend(t.place, depth); err != nil {
		return t, err
	}
	switch {
	case n.Kind == yaml.AliasNode:
		return t, badSyntax(t.place, "write the value out, or put a pattern in quotes", "an alias (*%s) is not allowed here", short(n.Value))
	case n.Anchor != "":
		return t, badSyntax(t.place, "write the value out where it is needed", "an anchor (&%s) is not allowed here", short(n.Anchor))
	case n.Style&yaml.TaggedStyle != 0:
		return t, badSyntax(t.place, "leave it out", "a tag (%s) is not allowed here", short(n.Tag))
	}
	switch n.Kind {
	case yaml.MappingNode:
		t.shape = shapeMap
		for i := 0; i+1 < len(n.Content); i += 2 {
			f, err := yamlField(b, n.Content[i], n.Content[i+1], depth)
			if err != nil {
				return t, err
			}
			t.fields = append(t.fields, f)
		}
	case yaml.SequenceNode:
		t.shape = shapeList
		for _, c := range n.Content {
			item, err := yamlTree(b, c, depth+1)
			if err != nil {
				return t, err
			}
			t.items = append(t.items, item)
		}
	case yaml.ScalarNode:
		t.shape = yamlShape(n)
	default:
		return t, badSyntax(t.place, "", "not valid YAML")
	}
	return t, nil
}

func yamlField(b *budget, key, value *yaml.Node, depth int) (field, error) {
	f := field{name: key.Value, place: yamlPlace(key)}
	switch {
	case key.Kind != yaml.ScalarNode, key.Anchor != "", key.Style&yaml.TaggedStyle != 0:
		return f, badSyntax(f.place, "write: field: value", "the name of a field must be plain text")
	case key.Value == "<<":
		return f, badSyntax(f.place, "write the fields out", "a merge key (<<) is not allowed here")
	}
	var err error
	f.value, err = yamlTree(b, value, depth+1)
	return f, err
}

func yamlShape(n *yaml.Node) shape {
	switch n.ShortTag() {
	case "!!int", "!!float":
		return shapeNumber
	case "!!bool":
		return shapeBool
	case "!!null":
		return shapeNull
	}
	return shapeText // dates too: they are written as text
}

// yamlSyntax turns the parser's "yaml: line 3: did not find ..." into a place
// and a message.
func yamlSyntax(err error) error {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	var p Place
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil {
			p = Place{Line: n, Column: 1}
		}
		text = m[2]
	}
	return badSyntax(p, yamlHint(text), "not valid YAML: %s", clean(text))
}

var yamlLine = regexp.MustCompile(`(?s)^line (\d+): (.*)$`)

func yamlHint(text string) string {
	switch {
	case strings.Contains(text, "cannot start any token") && strings.Contains(text, "tab"),
		strings.Contains(text, "found a tab"):
		return "indent with spaces"
	case strings.Contains(text, "unknown anchor"), strings.Contains(text, "alphabetic or numeric character"):
		return `put a value that begins with * or & in quotes: "*H100*"`
	case strings.Contains(text, "mapping values are not allowed"):
		return `put a value that holds ": " in quotes`
	case strings.Contains(text, "block scalar"), strings.Contains(text, "expected comment or line break"), strings.Contains(text, "cannot start any token"):
		return `put a value that begins with a special character in quotes: ">=16"`
	}
	return ""
}

// short quotes foreign text within a message: printable, and not much of it.
func short(s string) string { return clean(cut(s)) }

// cut is the beginning of a long text.
func cut(s string) string {
	const most = 40
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "..."
	}
	return s
}

func clean(s string) string {
	q := fmt.Sprintf("%+q", s)
	return strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`)
}
