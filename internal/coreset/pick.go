// Package coreset chooses cores of a machine: as many as are wanted, whole, near to each
// other, the same number from each socket.
package coreset

import (
	"cmp"
	"fmt"
	"slices"
)

// CPU is one hardware thread.
type CPU struct{ ID, Core, Socket, Node int }

// Pick chooses physical cores, each with all its threads, and returns the threads in order.
// cores 0: all. sockets 0: as few as hold them. Of sockets and cores alike those with the
// lowest numbers are chosen, so that the first thread of a machine, which cannot be switched
// off, is among them wherever it can be. The error says what there is instead.
func Pick(all []CPU, cores, sockets int) ([]int, error) {
	type core struct {
		socket, node, id int
		threads          []int
	}
	type at struct{ socket, core int }
	byCore := map[at]*core{}
	bySocket := map[int][]*core{}
	for _, c := range all {
		k := at{c.Socket, c.Core}
		if byCore[k] == nil {
			byCore[k] = &core{socket: c.Socket, node: c.Node, id: c.Core}
			bySocket[c.Socket] = append(bySocket[c.Socket], byCore[k])
		}
		byCore[k].threads = append(byCore[k].threads, c.ID)
	}
	if cores == 0 {
		cores = len(byCore)
	}
	numbers := make([]int, 0, len(bySocket))
	for s, list := range bySocket {
		numbers = append(numbers, s)
		for _, c := range list {
			slices.Sort(c.threads)
		}
		slices.SortFunc(list, func(a, b *core) int {
			return cmp.Or(cmp.Compare(a.node, b.node), cmp.Compare(a.threads[0], b.threads[0]))
		})
	}
	slices.Sort(numbers)
	var out []int
	take := func(socket, n int) {
		for _, c := range bySocket[socket][:n] {
			out = append(out, c.threads...)
		}
	}
	if sockets > 0 {
		each, found := cores/sockets, 0
		for _, s := range numbers {
			if found < sockets && len(bySocket[s]) >= each {
				take(s, each)
				found++
			}
		}
		if found < sockets || cores%sockets != 0 {
			return nil, fmt.Errorf("%d cores of %d sockets are asked for, and there are %d cores in %d sockets", cores, sockets, len(byCore), len(numbers))
		}
		slices.Sort(out)
		return out, nil
	}
	// The first sockets of which so many hold them all; from these the largest share each.
	slices.SortStableFunc(numbers, func(a, b int) int { return len(bySocket[b]) - len(bySocket[a]) })
	left := cores
	for _, s := range numbers {
		n := min(left, len(bySocket[s]))
		take(s, n)
		left -= n
	}
	if left > 0 {
		return nil, fmt.Errorf("%d cores are asked for, and there are %d", cores, len(byCore))
	}
	slices.Sort(out)
	return out, nil
}

// Count is how many physical cores and sockets some threads are of.
func Count(all []CPU, threads []int) (cores, sockets int) {
	type at struct{ socket, core int }
	c, s := map[at]bool{}, map[int]bool{}
	for _, cpu := range all {
		if slices.Contains(threads, cpu.ID) {
			c[at{cpu.Socket, cpu.Core}] = true
			s[cpu.Socket] = true
		}
	}
	return len(c), len(s)
}
