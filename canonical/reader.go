package canonical

import (
	"fmt"
	"slices"
)

// reader reads one text and writes its canonical form as it goes.
type reader struct {
	text  []byte
	at    int
	depth int
	mode  mode
}

func (r *reader) wrong(format string, args ...any) error {
	return &SyntaxError{At: r.at, What: fmt.Sprintf(format, args...)}
}

func (r *reader) space() {
	for r.at < len(r.text) {
		switch r.text[r.at] {
		case ' ', '\t', '\n', '\r':
			r.at++
		default:
			return
		}
	}
}

// peek is the next byte that is no space; 0 at the end. (A real 0 is an error
// wherever it stands.)
func (r *reader) peek() byte {
	r.space()
	if r.at == len(r.text) {
		return 0
	}
	return r.text[r.at]
}

func (r *reader) value(out []byte) ([]byte, error) {
	switch c := r.peek(); {
	case c == '{':
		return r.nested(out, r.object)
	case c == '[':
		return r.nested(out, r.array)
	case c == '"':
		_, out, err := r.str(out)
		return out, err
	case c == '-' || (c >= '0' && c <= '9'):
		return r.number(out)
	case c == 't':
		return r.word(out, "true")
	case c == 'f':
		return r.word(out, "false")
	case c == 'n':
		return r.word(out, "null")
	case r.at == len(r.text):
		return nil, r.wrong("the text ends where a value is wanted")
	}
	return nil, r.wrong("no value begins with %q", r.text[r.at])
}

func (r *reader) nested(out []byte, read func([]byte) ([]byte, error)) ([]byte, error) {
	if r.depth == MaxDepth {
		return nil, r.wrong("more than %d values stand inside each other", MaxDepth)
	}
	r.depth++
	r.at++ // the bracket
	out, err := read(out)
	r.depth--
	return out, err
}

func (r *reader) word(out []byte, want string) ([]byte, error) {
	if rest := r.text[r.at:]; len(rest) < len(want) || string(rest[:len(want)]) != want {
		return nil, r.wrong("a word is neither true, false nor null")
	}
	r.at += len(want)
	return append(out, want...), nil
}

func (r *reader) array(out []byte) ([]byte, error) {
	out = append(out, '[')
	if r.peek() == ']' {
		r.at++
		return append(out, ']'), nil
	}
	for {
		var err error
		if out, err = r.value(out); err != nil {
			return nil, err
		}
		switch r.peek() {
		case ',':
			r.at++
			out = append(out, ',')
		case ']':
			r.at++
			return append(out, ']'), nil
		default:
			return nil, r.wrong("a comma or ] is wanted")
		}
	}
}

// member is one member of an object: its name, and its bytes in the output.
type member struct {
	name       string
	at         int // in the text
	begin, end int // in the output
}

func (r *reader) object(out []byte) ([]byte, error) {
	out = append(out, '{')
	if r.peek() == '}' {
		r.at++
		return append(out, '}'), nil
	}
	var members []member
	for {
		if r.peek() != '"' {
			return nil, r.wrong("the name of a member is wanted")
		}
		m := member{at: r.at, begin: len(out)}
		var err error
		if m.name, out, err = r.str(out); err != nil {
			return nil, err
		}
		if r.peek() != ':' {
			return nil, r.wrong("a colon is wanted")
		}
		r.at++
		if out, err = r.value(append(out, ':')); err != nil {
			return nil, err
		}
		m.end = len(out)
		members = append(members, m)
		switch r.peek() {
		case ',':
			r.at++
			out = append(out, ',')
		case '}':
			r.at++
			if out, err = sorted(out, members); err != nil {
				return nil, err
			}
			return append(out, '}'), nil
		default:
			return nil, r.wrong("a comma or } is wanted")
		}
	}
}

// sorted puts the members at the end of out into order, and refuses a name that
// stands twice.
func sorted(out []byte, members []member) ([]byte, error) {
	begin := members[0].begin
	byName := func(a, b member) int { return compare(a.name, b.name) }
	if !slices.IsSortedFunc(members, byName) {
		was := slices.Clone(out[begin:])
		slices.SortStableFunc(members, byName)
		out = out[:begin]
		for i, m := range members {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(out, was[m.begin-begin:m.end-begin]...)
		}
	}
	for i := 1; i < len(members); i++ {
		if members[i].name == members[i-1].name {
			return nil, &SyntaxError{At: members[i].at, What: fmt.Sprintf("a name stands twice: %q", members[i].name)}
		}
	}
	return out, nil
}
