package nodeset

import (
	"cmp"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
)

// MaxExpand is the most names that Expand makes.
const MaxExpand = 100000

// Set is a set of node names. The zero Set is empty. Sets are values: no
// method changes its receiver.
type Set struct {
	// spans by what stands around the number; normalized and never empty. A
	// name without digits is a key with plain set and no spans.
	groups map[key][]span
}

// key is what names share: all but their last number.
type key struct {
	prefix, suffix string
	plain          bool
}

func compareKeys(a, b key) int {
	c := cmp.Or(strings.Compare(a.prefix, b.prefix), strings.Compare(a.suffix, b.suffix))
	if c == 0 && a.plain != b.plain {
		c = 1
		if a.plain {
			c = -1 // x, then x1
		}
	}
	return c
}

// Of makes a set of single names. Names that could not be parsed are an error.
func Of(names ...string) (Set, error) {
	b := builder{}
	for _, n := range names {
		if i := strings.IndexFunc(n, notName); i >= 0 || n == "" {
			return Set{}, &Error{Text: shorten(n), Offset: i, Message: "not a node name"}
		}
		b.name(n)
	}
	return b.set(), nil
}

// builder collects spans, which are normalized once at the end.
type builder struct{ groups map[key][]span }

func (b *builder) add(k key, s span) {
	if b.groups == nil {
		b.groups = make(map[key][]span)
	}
	if k.plain {
		b.groups[k] = nil
		return
	}
	b.groups[k] = append(b.groups[k], s)
}

func (b *builder) name(n string) {
	k, s := split(n)
	b.add(k, s)
}

func (b *builder) set() Set {
	for k, list := range b.groups {
		b.groups[k] = normalize(list)
	}
	return Set{b.groups}
}

// split takes a name apart at its last number.
func split(name string) (key, span) {
	end := len(name)
	for end > 0 && !isDigit(name[end-1]) {
		end--
	}
	if end == 0 {
		return key{prefix: name, plain: true}, span{}
	}
	start := end
	for start > 0 && end-start < maxDigits && isDigit(name[start-1]) {
		start--
	}
	v := decimal(name[start:end])
	return key{prefix: name[:start], suffix: name[end:]}, span{digits: end - start, low: v, high: v}
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// decimal reads at most maxDigits digits.
func decimal(s string) uint64 {
	var v uint64
	for i := range len(s) {
		v = v*10 + uint64(s[i]-'0')
	}
	return v
}

// Count is how many names the set has, at most the largest int.
func (s Set) Count() int {
	var n uint64
	for k, list := range s.groups {
		if k.plain {
			n++
		}
		for _, p := range list {
			n += min(p.size(), math.MaxInt)
			n = min(n, math.MaxInt)
		}
	}
	return int(n)
}

// Empty reports whether the set has no names.
func (s Set) Empty() bool { return len(s.groups) == 0 }

// Contains reports whether a name is in the set.
func (s Set) Contains(name string) bool {
	k, p := split(name)
	list, ok := s.groups[k]
	return ok && (k.plain || hasNumber(list, p.digits, p.low))
}

// Equal reports whether both sets have the same names.
func (s Set) Equal(o Set) bool {
	return maps.EqualFunc(s.groups, o.groups, slices.Equal)
}

// Union has the names that are in either set.
func (s Set) Union(o Set) Set {
	b := builder{groups: make(map[key][]span, len(s.groups))}
	for k, list := range s.groups {
		b.groups[k] = slices.Clone(list)
	}
	for k, list := range o.groups {
		b.groups[k] = append(b.groups[k], list...)
	}
	return b.set()
}

// Intersect has the names that are in both sets.
func (s Set) Intersect(o Set) Set {
	return s.combine(func(k key, list []span) ([]span, bool) {
		other, ok := o.groups[k]
		return intersectSpans(list, other), ok && k.plain
	})
}

// Difference has the names of s that are not in o.
func (s Set) Difference(o Set) Set {
	return s.combine(func(k key, list []span) ([]span, bool) {
		other, ok := o.groups[k]
		return subtractSpans(list, other), !ok && k.plain
	})
}

// combine maps every group; plain groups stay where keep says so.
func (s Set) combine(f func(key, []span) (list []span, keep bool)) Set {
	groups := make(map[key][]span)
	for k, list := range s.groups {
		if out, keep := f(k, list); len(out) > 0 || keep {
			groups[k] = out
		}
	}
	return Set{groups}
}

func (s Set) keys() []key { return slices.SortedFunc(maps.Keys(s.groups), compareKeys) }

// All goes through the names in order: by what is before the number, then by
// its digits, then by the number.
func (s Set) All() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, k := range s.keys() {
			if k.plain && !yield(k.prefix) {
				return
			}
			for _, p := range s.groups[k] {
				for v := p.low; v <= p.high; v++ {
					if !yield(k.prefix + p.number(v) + k.suffix) {
						return
					}
				}
			}
		}
	}
}

// Expand lists the names in the order of All. Sets of more than MaxExpand
// names are an error.
func (s Set) Expand() ([]string, error) {
	n := s.Count()
	if n > MaxExpand {
		return nil, &Error{Text: shorten(s.String()), Offset: -1, Message: "more names than can be listed (100000)"}
	}
	out := make([]string, 0, n)
	for name := range s.All() {
		out = append(out, name)
	}
	return out, nil
}

// String is the folded form: "head,n[01-16,20]".
func (s Set) String() string {
	parts := make([]string, 0, len(s.groups))
	for _, k := range s.keys() {
		list := s.groups[k]
		switch {
		case k.plain:
			parts = append(parts, k.prefix)
		case len(list) == 1 && list[0].low == list[0].high:
			parts = append(parts, k.prefix+list[0].number(list[0].low)+k.suffix)
		default:
			parts = append(parts, k.prefix+"["+fold(list)+"]"+k.suffix)
		}
	}
	return strings.Join(parts, ",")
}

// Fold writes names in the folded form. Names that are none are left as they
// are, at the end.
func Fold(names []string) string {
	var b builder
	var odd []string
	for _, n := range names {
		if n == "" || strings.IndexFunc(n, notName) >= 0 {
			odd = append(odd, n)
			continue
		}
		b.name(n)
	}
	if s := b.set().String(); s != "" {
		odd = append([]string{s}, odd...)
	}
	return strings.Join(odd, ",")
}

// Expand parses a set and lists its names.
func Expand(text string) ([]string, error) {
	s, err := Parse(text)
	if err != nil {
		return nil, err
	}
	return s.Expand()
}
