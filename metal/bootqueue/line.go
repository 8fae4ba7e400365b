package bootqueue

import (
	"slices"
	"sort"
)

// waiter is a machine that waits, with the number of its asking.
type waiter struct {
	machine string
	number  int64
}

// line are the machines of one owner that wait, in the order of their asking.
type line struct {
	owner string
	queue []waiter
}

// join puts a machine at the end of its owner's line. An owner of whom nobody waited
// stands behind the others.
func (r *Rack) join(machine, owner string) {
	l := r.lines[owner]
	if l == nil {
		l = &line{owner: owner}
		r.lines[owner] = l
		r.turns = append(r.turns, l)
	}
	r.last++
	l.queue = append(l.queue, waiter{machine, r.last})
	r.waiting[machine] = position{l, r.last}
}

// pop takes the first machine of the owner whose turn it is, who then stands behind the
// others.
func (r *Rack) pop() (machine, owner string) {
	l := r.turns[0]
	w := l.queue[0]
	l.queue = l.queue[1:]
	r.turns = r.turns[1:]
	if len(l.queue) > 0 {
		r.turns = append(r.turns, l)
	} else {
		delete(r.lines, l.owner)
	}
	delete(r.waiting, w.machine)
	return w.machine, l.owner
}

// quit takes a machine out of its line.
func (r *Rack) quit(machine string) {
	s, ok := r.waiting[machine]
	if !ok {
		return
	}
	delete(r.waiting, machine)
	i := s.line.index(s.number)
	if s.line.queue = slices.Delete(s.line.queue, i, i+1); len(s.line.queue) == 0 {
		delete(r.lines, s.line.owner)
		i := slices.Index(r.turns, s.line)
		r.turns = slices.Delete(r.turns, i, i+1)
	}
}

// index finds a number in the line, which is in their order.
func (l *line) index(number int64) int {
	return sort.Search(len(l.queue), func(i int) bool { return l.queue[i].number >= number })
}

// ahead is how many go before who is i-th in a line.
func (r *Rack) ahead(mine *line, i int) int {
	n, behind := i, false
	for _, l := range r.turns {
		switch {
		case l == mine:
			behind = true
		case behind:
			n += min(len(l.queue), i)
		default:
			n += min(len(l.queue), i+1)
		}
	}
	return n
}

// order plays through who goes after whom.
func (r *Rack) order() []string {
	out := make([]string, 0, len(r.waiting))
	left := slices.Clone(r.turns)
	for round := 0; len(left) > 0; round++ {
		for _, l := range left {
			out = append(out, l.queue[round].machine)
		}
		left = slices.DeleteFunc(left, func(l *line) bool { return len(l.queue) == round+1 })
	}
	return out
}
