package cli

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/nodeset"
	"github.com/muster-hpc/muster/wire"
)

// showNode shows one node of a cluster.
func (a *app) showNode(c wire.Cluster, name string) error {
	i := slices.IndexFunc(c.Nodes, func(n wire.Node) bool { return n.Name == name })
	if i < 0 {
		return muster.Errorf(muster.ENotFound, "cluster %s has no node %q", c.Name, name).Because(muster.ReasonNoSuchNode).WithHint("see 'muster show %s'", c.Name)
	}
	n := c.Nodes[i]
	return a.print(n, func(w io.Writer) {
		writeNodes(w, c.Nodes[i:i+1], time.Now())
		writeConditions(w, "", n.Conditions, "")
		if n.VM == nil {
			return
		}
		fmt.Fprintf(w, "\nvirtual machine, %s, read back %s\n", clean(n.VM.Condition().String()), stamp(n.VM.At))
		if !n.VM.KVM {
			fmt.Fprintln(w, "nothing that is measured in it says anything of speed, and nothing is certified: QEMU emulates the processor")
		}
		t := newTable("SETTING", "PLANNED", "FOUND", "HOLDS")
		for _, s := range n.VM.Settings {
			t.row(s.Name, s.Value, s.Found, map[bool]string{true: "yes", false: "no"}[s.Holds])
		}
		t.write(w)
		for _, s := range n.VM.Missed() {
			fmt.Fprintf(w, "%s: what to do: %s\n", clean(s.Name), clean(s.Cure))
		}
	})
}

// writeVirtual says how the nodes that are virtual machines are set up, those alike together.
func writeVirtual(w io.Writer, nodes []wire.Node) {
	who := map[string][]string{}
	var order []string
	for _, n := range nodes {
		if n.VM == nil {
			continue
		}
		text := n.VM.Condition().String()
		if who[text] == nil {
			order = append(order, text)
		}
		who[text] = append(who[text], n.Name)
	}
	for _, text := range order {
		fmt.Fprintf(w, "%s: virtual machines, %s\n", nodeset.Fold(who[text]), clean(text))
	}
}
