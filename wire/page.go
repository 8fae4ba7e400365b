package wire

import "slices"

// Bounds of pages of lists.
const (
	PageUsual = 1000   // where nobody says how many
	PageMost  = 10_000 // what may be asked for at once
)

// Page asks for a part of a list: at most Limit things, which come after the cursor
// After.
type Page struct {
	Limit int    // 0: PageUsual
	After string // Next of the page before; "": from the beginning
}

// Size is how many things the page has at most.
func (p Page) Size() int {
	if p.Limit <= 0 {
		return PageUsual
	}
	return min(p.Limit, PageMost)
}

// More is in every reply that is a page.
type More struct {
	Next string `json:"next,omitempty" doc:"There is more: ask again with this as after"`
}

// Cut is the page of a list that is at hand as a whole. key is where a thing stands in
// the order of the list, which is that of the keys.
func Cut[T any](list []T, p Page, key func(T) string) ([]T, More) {
	if p.After != "" {
		begin := slices.IndexFunc(list, func(v T) bool { return key(v) > p.After })
		if begin < 0 {
			return nil, More{}
		}
		list = list[begin:]
	}
	if n := p.Size(); len(list) > n {
		return list[:n], More{Next: key(list[n-1])}
	}
	return list, More{}
}
