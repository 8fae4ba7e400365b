package spec

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/muster-hpc/muster/wire"
	"go.yaml.in/yaml/v3"
)

// Encode writes a request in a format, such that Decode gives the same back.
// Fields that ask for nothing are left out. Any text can be written as JSON
// and YAML; XML has no way to write control characters, nor blanks around a
// text, which no valid request contains.
func Encode(req wire.Request, format Format) ([]byte, error) {
	t := treeOf(reflect.ValueOf(req))
	switch format {
	case JSON:
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false) // ">=16" stays legible
		e.SetIndent("", "  ")
		err := e.Encode(req)
		return b.Bytes(), err
	case YAML:
		var b bytes.Buffer
		e := yaml.NewEncoder(&b)
		e.SetIndent(2)
		if err := e.Encode(yamlOf(t)); err != nil {
			return nil, err
		}
		err := e.Close()
		return b.Bytes(), err
	case XML:
		var b bytes.Buffer
		writeXML(&b, rootElement, t, "")
		return b.Bytes(), nil
	}
	return nil, fmt.Errorf("unknown format %q", format)
}

// treeOf is the reverse of decoder.fields.
func treeOf(v reflect.Value) tree {
	switch v.Kind() {
	case reflect.Struct:
		t := tree{shape: shapeMap}
		for i, name := range fieldNames(v.Type()) {
			if f := v.Field(i); !f.IsZero() {
				t.fields = append(t.fields, field{name: name, value: treeOf(f)})
			}
		}
		return t
	case reflect.Pointer:
		return treeOf(v.Elem())
	case reflect.Slice:
		t := tree{shape: shapeList}
		for i := range v.Len() {
			t.items = append(t.items, treeOf(v.Index(i)))
		}
		return t
	case reflect.Int:
		return tree{shape: shapeNumber, text: strconv.FormatInt(v.Int(), 10)}
	case reflect.Bool:
		return tree{shape: shapeBool, text: strconv.FormatBool(v.Bool())}
	}
	return tree{shape: shapeText, text: v.String()}
}

func yamlOf(t tree) *yaml.Node {
	n := &yaml.Node{}
	switch t.shape {
	case shapeMap:
		n.Kind = yaml.MappingNode
		for _, f := range t.fields {
			key := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: f.name}
			n.Content = append(n.Content, key, yamlOf(f.value))
		}
	case shapeList:
		n.Kind, n.Style = yaml.SequenceNode, yaml.FlowStyle
		for _, i := range t.items {
			n.Content = append(n.Content, yamlOf(i))
		}
	case shapeText:
		n.SetString(t.text) // quoted where it has to be
		n.Style = 0
		if strings.ContainsAny(t.text, "\n\r") {
			n.Style = yaml.DoubleQuotedStyle
		}
	default:
		n.Kind, n.Value = yaml.ScalarNode, t.text
	}
	return n
}

func writeXML(b *bytes.Buffer, name string, t tree, indent string) {
	fmt.Fprintf(b, "%s<%s>", indent, name)
	switch t.shape {
	case shapeMap, shapeList:
		b.WriteByte('\n')
		for _, f := range t.fields {
			writeXML(b, f.name, f.value, indent+"  ")
		}
		for _, i := range t.items {
			writeXML(b, strings.TrimSuffix(name, "s"), i, indent+"  ")
		}
		b.WriteString(indent)
	default:
		_ = xml.EscapeText(b, []byte(t.text)) // a buffer does not fail
	}
	fmt.Fprintf(b, "</%s>\n", name)
}
