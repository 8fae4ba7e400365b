package cli

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/certificate/page"
	"github.com/muster-hpc/muster/internal/plaintext"
	"github.com/muster-hpc/muster/wire"
	"github.com/spf13/cobra"
)

func (a *app) machineTopology() *cobra.Command {
	return &cobra.Command{
		Use: "topology MACHINE", Short: "Show how a machine is built", Args: exactly("MACHINE"),
		Long: `Shows how a machine is built, as hwloc sees it, or the kernel where hwloc is missing:
sockets, the memory near to each, caches, cores with their hardware threads, and network
cards at the memory they are near to. What a slice of a host shows is its part of it.

A machine that runs a node is asked; of others the newest certificate says it. With -o svg
it is drawn.`,
		Example: `  muster machine topology local-01
  muster machine topology r1-n01 -o svg > r1-n01.svg
  muster machine topology r1-n01 -o json`,
		ValidArgsFunction: a.completeMachine,
		RunE: func(c *cobra.Command, args []string) error {
			drawn := a.output == "svg"
			if !drawn {
				if err := a.checkOutput(); err != nil {
					return err
				}
			}
			k, err := a.connect()
			if err != nil {
				return err
			}
			m, err := k.Topology(c.Context(), muster.MachineID(args[0]))
			if err != nil {
				return err
			}
			if drawn {
				return page.WriteMachine(a.env.Out, string(m.Machine), muster.TestEnvironment{
					Processor: m.Processor, Sockets: m.Sockets, Cores: m.Cores, Threads: m.Threads, Memory: m.Memory, Topology: &m.Topology,
				})
			}
			return a.print(m, func(w io.Writer) { writeTopology(w, m) })
		},
	}
}

func writeTopology(w io.Writer, m wire.MachineTopology) {
	t := m.Topology
	from := clean(t.Source)
	if from != "" {
		from = "by " + from
	}
	said := ", " + stamp(m.At)
	if m.Certificate != "" {
		said = ", in certificate " + string(m.Certificate) + said
	}
	var facts []string
	for _, f := range []struct {
		n    int
		name string
	}{{m.Sockets, "socket"}, {m.Cores, "core"}, {m.Threads, "thread"}} {
		if f.n > 0 {
			facts = append(facts, plaintext.Count(f.n, f.name))
		}
	}
	fmt.Fprintf(w, "%s: %s\n", clean(string(m.Machine)), strings.Join(append([]string{cmp.Or(clean(m.Processor), "processor not known")}, facts...), ", "))
	fmt.Fprintf(w, "%s%s\n", from, said)
	drawn := map[int]bool{}
	for _, p := range t.Packages {
		fmt.Fprintf(w, "\nsocket %d\n", p.ID)
		for _, n := range p.Nodes {
			drawn[n.ID] = true
			memory := ""
			if n.Memory > 0 {
				memory = ", " + size(n.Memory)
			}
			fmt.Fprintf(w, "  memory %d%s\n", n.ID, memory)
			for _, g := range n.Groups {
				fmt.Fprintf(w, "    %s\n", groupText(g))
			}
			for _, c := range t.NICs {
				if c.Node != nil && *c.Node == n.ID {
					fmt.Fprintf(w, "    network card %s\n", nearNICText(c))
				}
			}
		}
	}
	head := true
	for _, c := range t.NICs {
		if c.Node != nil && drawn[*c.Node] {
			continue
		}
		if head {
			fmt.Fprintln(w, "\nnear to all memory, or not known")
			head = false
		}
		fmt.Fprintf(w, "  network card %s\n", nearNICText(c))
	}
}

// groupText is the cores that share a cache: "L3 24 MiB, 2x L1 48 KiB: cores 0+4 1+5".
func groupText(g muster.CoreGroup) string {
	var caches []string
	for _, c := range g.Caches {
		text := fmt.Sprintf("L%d %s", c.Level, size(c.Size))
		if c.Count > 1 {
			text = fmt.Sprintf("%dx %s", c.Count, text)
		}
		caches = append(caches, text)
	}
	var cores []string
	for _, c := range g.Cores {
		var threads []string
		for _, t := range c {
			threads = append(threads, fmt.Sprint(t))
		}
		cores = append(cores, strings.Join(threads, "+"))
	}
	text := "cores " + strings.Join(cores, " ")
	if len(caches) > 0 {
		text = strings.Join(caches, ", ") + ": " + text
	}
	return text
}

func nearNICText(n muster.NearNIC) string {
	words := []string{clean(n.Name)}
	if n.Speed > 0 {
		words = append(words, amount(float64(n.Speed), "bit/s"))
	}
	if n.PCIAddress != "" {
		words = append(words, clean(n.PCIAddress))
	}
	return strings.Join(words, ", ")
}
