package program

import (
	"fmt"
	"slices"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/plaintext"
)

// Wanted is how ranks are to lie.
type Wanted struct {
	Ranks, Nodes int
	// PerNode is how many ranks a node has; 0: as many as it holds. Threads are the cores of a
	// rank; 0: one.
	PerNode, Threads int
}

// Place is Layout for ranks that have several cores each, or so many on each node.
func Place(cores []int, w Wanted) (Factors, []muster.Problem) {
	threads := max(1, w.Threads)
	room := make([]int, len(cores))
	for i, c := range cores {
		room[i] = max(1, c) / threads
	}
	if least := slices.Min(room); least == 0 {
		return Factors{}, []muster.Problem{{Field: "threads", Reason: muster.ReasonOutOfRange, Message: fmt.Sprintf("a node of %s has no room for a rank of %s", plaintext.Count(slices.Min(cores), "core"), plaintext.Count(threads, "thread")),
			Hint: fmt.Sprintf("give at most %d", max(1, slices.Min(cores)))}}
	} else if w.PerNode > 0 && w.Nodes <= len(cores) {
		if w.PerNode > least {
			return Factors{}, []muster.Problem{{Field: "per_node", Reason: muster.ReasonOutOfRange, Message: fmt.Sprintf("a node has no room for %s", plaintext.Count(w.PerNode, "rank")), Hint: fmt.Sprintf("give at most %d", least)}}
		}
		if w.Ranks == 0 {
			w.Ranks = w.PerNode * len(cores)
			if w.Nodes > 0 {
				w.Ranks = w.PerNode * w.Nodes
			}
		}
		need := (w.Ranks + w.PerNode - 1) / w.PerNode
		if w.Nodes > 0 && w.Nodes != need {
			return Factors{}, []muster.Problem{{Field: "nodes", Reason: muster.ReasonContradiction, Message: fmt.Sprintf("%d ranks, %d on each node, are on %s, and not on %d", w.Ranks, w.PerNode, plaintext.Count(need, "node"), w.Nodes),
				Hint: "leave out the nodes, the ranks or the ranks of a node"}}
		}
		w.Nodes = need
	}
	return Layout(room, w.Ranks, w.Nodes)
}

// Layout spreads ranks over nodes of so many cores each: as few nodes as hold them, or as many
// as are asked for. Without ranks there is one for each core of all nodes. The ranks of a node
// have a core each.
func Layout(cores []int, ranks, nodes int) (f Factors, problems []muster.Problem) {
	least, all := 0, 0
	for _, c := range cores {
		c = max(1, c)
		all += c
		if least == 0 || c < least {
			least = c
		}
	}
	add := func(field, hint, format string, args ...any) {
		problems = append(problems, muster.Problem{Field: field, Reason: muster.ReasonOutOfRange, Message: fmt.Sprintf(format, args...), Hint: hint})
	}
	if nodes < 0 || nodes > len(cores) {
		add("nodes", fmt.Sprintf("give 1 to %d, or leave it out", len(cores)), "the cluster has %d compute nodes", len(cores))
		return f, problems
	}
	over := nodes // 0: as needed
	if over == 0 {
		over = len(cores)
	}
	most := over * least
	if ranks == 0 {
		ranks = most
	}
	if ranks < 1 || ranks > most {
		add("ranks", fmt.Sprintf("give 1 to %d: each rank has a core of its own", most), "there is no room for %s on %s of %s", plaintext.Count(ranks, "rank"), plaintext.Count(over, "node"), plaintext.Count(least, "core"))
		return f, problems
	}
	if nodes == 0 {
		over = (ranks + least - 1) / least
	}
	if ranks < over {
		add("nodes", "give fewer nodes, or more ranks", "%s cannot share %s", plaintext.Count(over, "node"), plaintext.Count(ranks, "rank"))
		return f, problems
	}
	return Factors{Ranks: ranks, Nodes: over, PerNode: (ranks + over - 1) / over}, nil
}
