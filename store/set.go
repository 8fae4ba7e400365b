package store

import (
	"slices"
)

// set is all records of a kind that there are, in their order. None is ever removed.
type set[K comparable, V any] struct {
	kind[K, V]
	list   []entry[V]
	at     map[K]int
	newest int64
}

// kind tells how the records of a set are named and ordered.
type kind[K comparable, V any] struct {
	key   func(*V) K
	order func(a, b *V) int
}

func newSet[K comparable, V any](k kind[K, V], list []entry[V]) *set[K, V] {
	t := &set[K, V]{kind: k, at: make(map[K]int, len(list))}
	t.put(list)
	return t
}

// put replaces and adds records. Of no set there is nothing to replace: it is read as a whole.
func (t *set[K, V]) put(list []entry[V]) {
	if t == nil {
		return
	}
	moved := false
	for _, e := range list {
		t.newest = max(t.newest, e.rev)
		k := t.key(&e.v)
		i, known := t.at[k]
		if !known {
			i = len(t.list)
			t.at[k], t.list = i, append(t.list, e)
		}
		moved = moved || !known || t.order(&t.list[i].v, &e.v) != 0
		t.list[i] = e
	}
	if !moved {
		return
	}
	slices.SortFunc(t.list, func(a, b entry[V]) int { return t.order(&a.v, &b.v) })
	for i := range t.list {
		t.at[t.key(&t.list[i].v)] = i
	}
}

// find returns a record as a transaction sees it, empty when there is none: none is ever
// removed. It is not known when it changed since.
func (t *set[K, V]) find(s *session, k K) (v V, known bool) {
	if t == nil {
		return v, false
	}
	s.db.cache.mu.RLock()
	defer s.db.cache.mu.RUnlock()
	e, ok := t.last(k)
	if !ok {
		return v, true
	}
	return e.v, e.rev <= s.seen
}

// last returns a record as it was committed last, with the cache locked.
func (t *set[K, V]) last(k K) (e entry[V], ok bool) {
	if t == nil {
		return e, false
	}
	i, ok := t.at[k]
	if ok {
		e = t.list[i]
	}
	return e, ok
}

// all returns the records as a transaction sees them, with what it and its group wrote of
// those that match; false when some changed since. They are shared: they are read only.
func (t *set[K, V]) all(s *session, match func(*V) bool) ([]V, bool) {
	if t == nil {
		return nil, false
	}
	out, ok := t.committed(s, match)
	if !ok || s.clean() {
		return out, ok
	}
	wrote := map[K]V{}
	for _, w := range []map[any]any{s.db.group.wrote, s.wrote} {
		for _, e := range w {
			if e, ok := e.(entry[V]); ok {
				wrote[t.key(&e.v)] = e.v
			}
		}
	}
	out = slices.DeleteFunc(out, func(v V) bool { _, ok := wrote[t.key(&v)]; return ok })
	for _, v := range wrote {
		if match(&v) {
			out = append(out, v)
		}
	}
	slices.SortFunc(out, func(a, b V) int { return t.order(&a, &b) })
	return out, true
}

func (t *set[K, V]) committed(s *session, match func(*V) bool) (out []V, ok bool) {
	s.db.cache.mu.RLock()
	defer s.db.cache.mu.RUnlock()
	if t.newest > s.seen {
		return nil, false
	}
	for i := range t.list {
		if v := &t.list[i].v; match(v) {
			out = append(out, *v)
		}
	}
	return out, true
}
