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
	// Done: the pages are taken. Otherwise that is what was to be done next.
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
			err = errors.Join(err, h.Give(list))
			return errors.Join(err, note(nil))
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
	got, err := p.set(t.After)
	if err != nil {
		return fmt.Errorf("set huge pages of memory node %d: %w", w.Node, err)
	}
	want := t.After
	t.After, t.Done = max(got, total), true
	if err := note(t); err != nil {
		return err
	}
	if got < want {
		return &ShortError{Want: w, Had: idle + t.After - total}
	}
	return nil
}

// Give gives back what was taken. Nobody may use it any more. It may be repeated only with a note that says what is left.
func (h Host) Give(list []Taken) error {
	var errs []error
	for _, t := range list {
		errs = append(errs, h.give(t))
	}
	return errors.Join(errs...)
}

func (h Host) give(t Taken) error {
	p, err := h.open(t.Node, t.Size)
	if err != nil {
		return err
	}
	defer p.close()
	total, err := p.total()
	if err != nil {
		return err
	}
	n := t.After - t.Before
	if !t.Done { // nobody knows whether the kernel was asked, and how many it found
		n = max(0, min(total, t.After)-t.Before)
	}
	if n == 0 {
		return nil
	}
	left, err := p.set(max(0, total-n))
	if err != nil {
		return fmt.Errorf("give back huge pages of memory node %d: %w", t.Node, err)
	}
	if left > max(0, total-n) {
		return fmt.Errorf("%d huge pages of memory node %d are still in use", left-max(0, total-n), t.Node)
	}
	return nil
}
