package calendar

// queue is a heap of windows: the first by before is at its front. Plain, since it is the
// inner loop of every answer.
type queue struct {
	list   []window
	before func(a, b *window) bool
}

// queueOf makes one of a list, in place.
func queueOf(list []window, before func(a, b *window) bool) *queue {
	q := &queue{list, before}
	for i := len(list)/2 - 1; i >= 0; i-- {
		q.down(i)
	}
	return q
}

func (q *queue) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(q.list) {
			return
		}
		if right := child + 1; right < len(q.list) && q.before(&q.list[right], &q.list[child]) {
			child = right
		}
		if !q.before(&q.list[child], &q.list[i]) {
			return
		}
		q.list[i], q.list[child] = q.list[child], q.list[i]
		i = child
	}
}

func (q *queue) pop() window {
	first, last := q.list[0], len(q.list)-1
	q.list[0] = q.list[last]
	q.list = q.list[:last]
	q.down(0)
	return first
}

func (q *queue) push(w window) {
	q.list = append(q.list, w)
	for i := len(q.list) - 1; i > 0; {
		parent := (i - 1) / 2
		if !q.before(&q.list[i], &q.list[parent]) {
			return
		}
		q.list[i], q.list[parent] = q.list[parent], q.list[i]
		i = parent
	}
}
