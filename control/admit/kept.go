package admit

import (
	"fmt"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/plaintext"
)

// Kept is what a cluster with machines cannot leave when it gets more of them.
type Kept struct {
	Where string // "leaf A"
	// Has reports whether a machine is there.
	Has func(*muster.Machine) bool
	// All are the machines that are there, and Own those of the cluster among them.
	All, Own int
}

// stands is what is said of it.
const stands = ", where the cluster stands, "

// check rejects the machines that are elsewhere.
func (k *Kept) check() check {
	return check{
		reason: ReasonOutside, head: true, pass: k.Has,
		text:   "not in " + k.Where + ", where the cluster stands",
		change: "make another cluster, which may be elsewhere",
	}
}

// notice counts what is there.
func (k *Kept) notice(free int) string {
	text := "no free machine that fits"
	if free > 0 {
		text = plaintext.Count(free, "free machine") + " that fits"
		if free > 1 {
			text = plaintext.Count(free, "free machine") + " that fit"
		}
	}
	return fmt.Sprintf("%s%shas %s, and %d in all, %d of them its own", k.Where, stands, text, k.All, k.Own)
}
