package spec

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Decode reads one request. The error is a *muster.Error with code EInvalid
// that lists every problem; the request then holds what could be read. places
// reports where each field stands, so that problems found later can say so.
func Decode(data []byte, format Format) (req wire.Request, places Places, err error) {
	req, places, problems := decode(data, format)
	if e := Error(inOrder(problems)); e != nil {
		return req, places, e
	}
	return req, places, nil
}

// Read decodes and validates a request and reports the problems of both at
// once. The error is a *muster.Error with code EInvalid.
func Read(data []byte, format Format, d Defaults) (wire.Request, muster.Spec, error) {
	req, places, problems := decode(data, format)
	s, more := Validate(req, d)
	problems = places.Merge(problems, more)
	if e := Error(problems); e != nil {
		return req, muster.Spec{}, e
	}
	return req, s, nil
}

func decode(data []byte, format Format) (wire.Request, Places, []muster.Problem) {
	return decodeAs[wire.Request](data, format, kind{rootElement, "name and nodes"})
}

// kind is one of the kinds of requests.
type kind struct {
	root  string // its outermost element in XML
	least string // the fields that it must have
}

func decodeAs[T any](data []byte, format Format, k kind) (T, Places, []muster.Problem) {
	var req T
	t, err := parse(data, format, k)
	if err != nil {
		p := muster.Problem{Field: wholeRequest, Reason: muster.ReasonBadSyntax, Message: err.Error()}
		var s *syntaxError
		if errors.As(err, &s) {
			p.Place, p.Hint, p.Reason = s.place.String(), s.hint, s.why
		}
		return req, Places{}, []muster.Problem{p}
	}
	if k.root == rootElement {
		t = asWritten(t)
	}
	d := &decoder{places: make(Places)}
	d.fields(t, reflect.ValueOf(&req).Elem(), "")
	return req, d.places, limitProblems(d.problems)
}

// limitProblems cuts a hopeless list short.
func limitProblems(list []muster.Problem) []muster.Problem {
	if len(list) <= maxProblems {
		return list
	}
	more := len(list) - maxProblems
	return append(list[:maxProblems:maxProblems], muster.Problem{Field: "...", Reason: muster.ReasonTooMany, Message: fmt.Sprintf("%d more problems", more)})
}

// parse makes the tree.
func parse(data []byte, format Format, k kind) (tree, error) {
	if len(data) > maxBytes {
		return tree{}, badSyntax(Place{}, "", "the request is larger than %d KiB", maxBytes>>10).because(muster.ReasonTooLarge)
	}
	data = bytes.TrimPrefix(data, []byte(bom))
	if !utf8.Valid(data) {
		l := lines{data: data}
		return tree{}, badSyntax(l.at(firstInvalid(data)), "save the file as UTF-8", "the request is not UTF-8 text")
	}
	if strings.TrimSpace(string(data)) == "" {
		return tree{}, badSyntax(Place{}, "a request holds at least "+k.least, "the request is empty").because(muster.ReasonRequired)
	}
	if p, ok := tooDense(data); !ok {
		return tree{}, badSyntax(p, "", "the request has more than %d values", maxValues).because(muster.ReasonTooLarge)
	}
	switch format {
	case JSON:
		return parseJSON(data)
	case XML:
		return parseXML(data, k.root)
	case YAML:
		return parseYAML(data)
	}
	return tree{}, badSyntax(Place{}, "use yaml, json or xml", "the format %q is not known", short(string(format))).because(muster.ReasonUnknownFormat)
}

// tooDense finds text with more punctuation than any request of maxValues
// values needs, before a parser spends seconds on it.
func tooDense(data []byte) (Place, bool) {
	left := 4 * maxValues
	for i, c := range data {
		switch c {
		case '\n', ',', ':', '[', '{', '<', '"', '\'', '&', '*', '!', '?', '-', '#', '|', '>':
			if left--; left == 0 {
				l := lines{data: data}
				return l.at(i), false
			}
		}
	}
	return Place{}, true
}

func firstInvalid(data []byte) int {
	i := 0
	for i < len(data) {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n == 1 {
			break
		}
		i += n
	}
	return i
}

// Defaults fill what a request leaves open. Empty fields have the defaults of
// every site: image hpc, a separate head, packed placement, quick validation
// and no outgoing traffic.
type Defaults struct {
	Project   string   // empty: the caller decides later
	Users     []string // who may log in when the request names nobody
	Image     string
	Head      muster.HeadMode
	Scheduler muster.Scheduler // empty: ForImage decides
	Placement muster.Placement
	Validate  muster.Validation
	Egress    muster.Egress
	// Retain is how long the home of a deleted cluster is kept. 0:
	// muster.DefaultRetain; negative: not at all.
	Retain time.Duration
	// Now is the time of the request.
	Now time.Time
}
