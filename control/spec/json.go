package spec

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// parseJSON reads one JSON value.
func parseJSON(data []byte) (tree, error) {
	if !json.Valid(data) {
		return tree{}, jsonSyntax(data)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	p := &jsonParser{d: d, data: data, lines: lines{data: data}}
	return p.value(1)
}

// jsonSyntax finds out what is wrong with text that is not JSON.
func jsonSyntax(data []byte) error {
	var ignored json.RawMessage
	err := json.Unmarshal(data, &ignored)
	l := lines{data: data}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		// The offset is past the offending byte.
		return badSyntax(l.at(max(0, int(syntax.Offset)-1)), "", "not valid JSON: %s", syntax)
	}
	return badSyntax(Place{}, "", "not valid JSON")
}

type jsonParser struct {
	d     *json.Decoder
	data  []byte
	lines lines
	budget
}

// next is the place of the token that follows.
func (p *jsonParser) next() Place {
	i := int(p.d.InputOffset())
	for i < len(p.data) && bytes.IndexByte([]byte(" \t\r\n,:"), p.data[i]) >= 0 {
		i++
	}
	return p.lines.at(i)
}

func (p *jsonParser) value(depth int) (tree, error) {
	t := tree{place: p.next()}
	if err := p.spend(t.place, depth); err != nil {
		return t, err
	}
	token, err := p.d.Token()
	if err != nil {
		return t, badSyntax(t.place, "", "not valid JSON: %s", jsonCause(err))
	}
	switch v := token.(type) {
	case json.Delim:
		if v == '{' {
			t.shape = shapeMap
			return t, p.object(&t, depth)
		}
		t.shape = shapeList
		return t, p.array(&t, depth)
	case string:
		t.text = v
	case json.Number:
		t.shape, t.text = shapeNumber, v.String()
	case bool:
		t.shape, t.text = shapeBool, "false"
		if v {
			t.text = "true"
		}
	default:
		t.shape = shapeNull
	}
	return t, nil
}

func (p *jsonParser) object(t *tree, depth int) error {
	for p.d.More() {
		f := field{place: p.next()}
		name, err := p.d.Token()
		if err != nil {
			return badSyntax(f.place, "", "not valid JSON: %s", jsonCause(err))
		}
		f.name, _ = name.(string)
		if f.value, err = p.value(depth + 1); err != nil {
			return err
		}
		t.fields = append(t.fields, f)
	}
	_, err := p.d.Token()
	return err
}

func (p *jsonParser) array(t *tree, depth int) error {
	for p.d.More() {
		item, err := p.value(depth + 1)
		if err != nil {
			return err
		}
		t.items = append(t.items, item)
	}
	_, err := p.d.Token()
	return err
}

func jsonCause(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
