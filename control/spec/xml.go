package spec

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"

	"github.com/muster-hpc/muster"
)

// rootElement is the name of the outermost element of a request for a cluster in XML.
const rootElement = "cluster"

// parseXML reads one element of this name. Elements hold either text or other
// elements. Document types, entities of one's own, processing instructions,
// attributes and namespaces have no use in a request and are refused.
func parseXML(data []byte, root string) (tree, error) {
	d := xml.NewDecoder(bytes.NewReader(data))
	p := &xmlParser{d: d}
	for first := true; ; first = false {
		place := p.place()
		token, err := p.token()
		if errors.Is(err, io.EOF) {
			return tree{}, badSyntax(place, "a request is one <"+root+"> element", "the request is empty").because(muster.ReasonRequired)
		}
		if err != nil {
			return tree{}, err
		}
		switch v := token.(type) {
		case xml.ProcInst:
			if v.Target != "xml" || !first {
				return tree{}, badSyntax(place, "leave it out", "a processing instruction is not allowed here")
			}
		case xml.CharData:
			if len(bytes.TrimSpace(v)) > 0 {
				return tree{}, badSyntax(place, "", "text before the first element")
			}
		case xml.StartElement:
			if v.Name.Local != root {
				return tree{}, badSyntax(place, "write <"+root+"> ... </"+root+">", "the outermost element must be <%s>, not <%s>", root, short(v.Name.Local))
			}
			t, err := p.element(v, place, 1)
			if err != nil {
				return tree{}, err
			}
			return t, p.end()
		}
	}
}

type xmlParser struct {
	d *xml.Decoder
	budget
}

func (p *xmlParser) place() Place {
	line, column := p.d.InputPos()
	return Place{line, column}
}

// token is the next token that is no comment. It refuses what may stand
// nowhere.
func (p *xmlParser) token() (xml.Token, error) {
	for {
		place := p.place()
		token, err := p.d.Token()
		if errors.Is(err, io.EOF) {
			return nil, io.EOF
		}
		if err != nil {
			return nil, p.syntax(err)
		}
		switch token.(type) {
		case xml.Comment:
			continue
		case xml.Directive:
			return nil, badSyntax(place, "leave it out", "a document type (<!...>) is not allowed here")
		}
		return token, nil
	}
}

// syntax explains what the decoder found.
func (p *xmlParser) syntax(err error) error {
	var s *xml.SyntaxError
	if !errors.As(err, &s) {
		return badSyntax(p.place(), "", "not valid XML: %s", clean(strings.TrimPrefix(err.Error(), "xml: ")))
	}
	hint := ""
	switch {
	case strings.HasPrefix(s.Msg, "invalid character entity"):
		hint = "only &lt; &gt; &amp; &quot; and &apos; are known; write & as &amp;"
	case strings.Contains(s.Msg, "unexpected EOF"):
		hint = "an element is not closed"
	}
	place := p.place()
	if place.Line != s.Line {
		place = Place{s.Line, 1}
	}
	return badSyntax(place, hint, "not valid XML: %s", clean(s.Msg))
}

// element reads what is inside an element up to its end.
func (p *xmlParser) element(start xml.StartElement, place Place, depth int) (tree, error) {
	t := tree{place: place, untyped: true}
	if err := p.spend(place, depth); err != nil {
		return t, err
	}
	if len(start.Attr) > 0 || start.Name.Space != "" {
		what := "a prefix"
		if len(start.Attr) > 0 {
			what = "the attribute " + short(start.Attr[0].Name.Local)
		}
		return t, badSyntax(place, "write an element for each field", "<%s> holds %s; attributes and namespaces are not used", short(start.Name.Local), what)
	}
	var text strings.Builder
	for {
		at := p.place()
		token, err := p.token()
		if errors.Is(err, io.EOF) {
			return t, badSyntax(at, "", "not valid XML: <%s> is not closed", short(start.Name.Local))
		}
		if err != nil {
			return t, err
		}
		switch v := token.(type) {
		case xml.CharData:
			text.Write(v)
		case xml.ProcInst:
			return t, badSyntax(at, "leave it out", "a processing instruction is not allowed here")
		case xml.StartElement:
			child, err := p.element(v, at, depth+1)
			if err != nil {
				return t, err
			}
			t.shape = shapeMap
			t.fields = append(t.fields, field{name: v.Name.Local, place: at, value: child})
		case xml.EndElement:
			t.text = strings.TrimSpace(text.String())
			if t.shape == shapeMap && t.text != "" {
				return t, badSyntax(place, "put the text into an element of its own", "<%s> holds both elements and text (%s)", short(start.Name.Local), short(t.text))
			}
			return t, nil
		}
	}
}

// end makes certain that nothing follows.
func (p *xmlParser) end() error {
	for {
		place := p.place()
		token, err := p.token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if c, ok := token.(xml.CharData); !ok || len(bytes.TrimSpace(c)) > 0 {
			return badSyntax(place, "send each request by itself", "something follows the end of the request")
		}
	}
}
