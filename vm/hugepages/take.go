package hugepages

import (
	"errors"
	"fmt"
	"slices"
)

// Want is how many pages of a size a memory node is to have for somebody.
type Want struct {
	Node  int
	Size  int64 // bytes of a page
	Pages int64
}

// Taken is what was taken of a memory node, or was about to be: how many pages it had before, and how many after.
type Taken struct {
	Node   int   `json:"memory_node"`
	Size   int64 `json:"size_bytes"`
	Before int64 `json:"before"`
	After  int64 `json:"after"`
	// Done: the pages are taken. Otherwise a change between the two was about to be made: pages taken, or given back.
	Done bool `json:"done"`
}

// ShortError says that a memory node has too few pages, also after the kernel looked for more.
type ShortError struct {
	Want
	Had int64 // that could be had
}

func (e *ShortError) Error() string {
	return fmt.Sprintf("of %d huge pages of %d KiB in memory node %d only %d can be had", e.Pages, e.Size>>10, e.Node, e.Had)
}

// Take sets pages aside. Pending are those that are free still and promised to others. Note keeps what it is given,
// before and after each change; what is in it has to be given back. If there are too few, everything is given back
// and the error is a *ShortError.
func (h Host) Take(wants []Want, pending func(node int, size int64) int64, note func([]Taken) error) error {
	var list []Taken
	for _, w := range wants {
		if w.Pages == 0 {
			continue
		}
		err := h.take(w, pending(w.Node, w.Size), func(t Taken) error {
			if n := len(list); n > 0 && !list[n-1].Done {
				list = list[:n-1]
			}
			list = append(list, t)
			return note(slices.Clone(list))
		})
		if err != nil {
			// Also where nothing can be noted: nobody will use them.
			return errors.Join(err, h.Give(list, func(left []Taken) error { _ = note(left); return nil }), note(nil))
		}
	}
	return nil
}

func (h Host) take(w Want, pending int64, note func(Taken) error) error {
	p, err := h.open(w.Node, w.Size)
	if err != nil {
		return err
	}
	defer p.close()
	total, err := p.total()
	if err != nil {
		return err
	}
	free, err := p.free()
	if err != nil {
		return err
	}
	idle := max(0, free-pending)
	more := w.Pages - idle
	if more <= 0 {
		return nil // the site's own are enough
	}
	t := Taken{Node: w.Node, Size: w.Size, Before: total, After: total + more}
	if err := note(t); err != nil {
		return err
	}
	want := t.After
	got, err := p.set(want)
	if err != nil {
		err = fmt.Errorf("set huge pages of memory node %d: %w", w.Node, err)
		if got, failed := p.total(); failed == nil {
			t.settle(got)
			err = errors.Join(err, note(t))
		}
		return err
	}
	t.settle(got)
	if err := note(t); err != nil {
		return err
	}
	if got < want {
		return &ShortError{Want: w, Had: idle + t.After - total}
	}
	return nil
}

// settle says what of a change was made, when a pool has so many pages and nobody else has changed it since.
func (t *Taken) settle(total int64) {
	t.After, t.Done = min(max(total, t.Before), t.After), true
}

// Settle finds out how far a change got that a killed process has noted, and returns the note of it as done. It is called
// before anybody changes the pools again: later, what others took and gave would be mistaken for it.
func (h Host) Settle(list []Taken) ([]Taken, error) {
	list = slices.Clone(list)
	var errs []error
	for i := range list {
		if list[i].Done {
			continue
		}
		p, err := h.open(list[i].Node, list[i].Size)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if total, err := p.total(); err != nil {
			errs = append(errs, err)
		} else {
			list[i].settle(total)
		}
		p.close()
	}
	return list, errors.Join(errs...)
}

// Give gives back what was taken, nothing of which anybody uses any more. Note keeps what is left to give back, before and
// after each change.
func (h Host) Give(list []Taken, note func([]Taken) error) error {
	var errs []error
	left := slices.Clone(list)
	for _, t := range list {
		i := slices.Index(left, t)
		if err := h.give(&left[i], func() error { return note(slices.Clone(left)) }); err != nil {
			errs = append(errs, err)
			continue
		}
		left = slices.Delete(left, i, i+1)
		if err := note(slices.Clone(left)); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// give gives back what was taken of one pool, and notes in t how many pages that concerns before it does.
func (h Host) give(t *Taken, note func() error) error {
	p, err := h.open(t.Node, t.Size)
	if err != nil {
		return err
	}
	defer p.close()
	total, err := p.total()
	if err != nil {
		return err
	}
	if !t.Done {
		t.settle(total)
	}
	n := t.After - t.Before
	if n == 0 {
		return nil
	}
	fewer := max(0, total-n)
	t.Before, t.After, t.Done = fewer, total, false
	if err := note(); err != nil {
		return err
	}
	got, err := p.set(fewer)
	if err != nil {
		return fmt.Errorf("give back huge pages of memory node %d: %w", t.Node, err)
	}
	t.settle(got)
	if got > fewer {
		return errors.Join(fmt.Errorf("%d huge pages of memory node %d are still in use", got-fewer, t.Node), note())
	}
	return nil
}
