package topology

import (
	"fmt"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/yamldoc"
	"go.yaml.in/yaml/v3"
)

// conf reads Slurm's topology.conf: SwitchName=s1 Nodes=n[01-14], or Switches=.
func (f *file) conf(text string) {
	f.slurm = true
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		first := i + 1
		line := comment(lines[i])
		for strings.HasSuffix(strings.TrimRight(line, " \t\r"), "\\") && i+1 < len(lines) {
			i++
			line = strings.TrimSuffix(strings.TrimRight(line, " \t\r"), "\\") + " " + comment(lines[i])
		}
		if strings.TrimSpace(line) == "" {
			continue
		}
		if len(f.entries) > maxStands {
			return // finish says so
		}
		f.confLine(fmt.Sprintf("line %d", first), strings.Fields(line))
	}
}

func comment(line string) string {
	line, _, _ = strings.Cut(line, "#")
	return line
}

func (f *file) confLine(at string, words []string) {
	e := entry{line: at, field: "SwitchName"}
	seen := map[string]bool{}
	for _, w := range words {
		key, value, ok := strings.Cut(w, "=")
		field := yamldoc.Clip(key)
		switch key := strings.ToLower(key); {
		case !ok || value == "":
			f.Wrong(muster.ReasonBadSyntax, field, at, "write SwitchName=NAME Nodes=SET or Switches=SET, without spaces in a set", "%q has no value", yamldoc.Clip(w))
		case seen[key]:
			f.Wrong(muster.ReasonGivenTwice, field, at, "keep one", "the field is given twice")
		case key == "switchname":
			e.Name = value
			e.field = "SwitchName=" + yamldoc.Clip(value)
		case key == "switches":
			e.children = value
		case key == "nodes":
			e.Machines = value
		case key == "linkspeed": // Slurm says that its unit is arbitrary, and uses it for nothing
		case key == "blockname" || key == "blocksizes":
			f.Bad(field, at, "describe switches: SwitchName=NAME Nodes=SET", "blocks are not a tree of switches")
			return
		default:
			f.Unknown(key, at, []string{"SwitchName", "Switches", "Nodes", "LinkSpeed"})
		}
		seen[strings.ToLower(key)] = true
	}
	if e.Name == "" {
		f.Wrong(muster.ReasonRequired, "SwitchName", at, "begin the line with SwitchName=NAME", "the line names no switch")
		return
	}
	f.entries = append(f.entries, e)
}

// slurmYAML reads Slurm's topology.yaml: of its topologies the tree.
func (f *file) slurmYAML(top *yaml.Node) {
	trees := 0
	for i, n := range top.Content {
		path := fmt.Sprintf("[%d].", i)
		f.Fields(n, path, []string{"topology", "cluster_default", "tree", "block", "flat"}, func(name string, v *yaml.Node) {
			if name != "tree" {
				return // its name, and kinds that are no trees
			}
			if trees++; trees > 1 {
				f.Wrong(muster.ReasonTooMany, path+"tree", yamldoc.At(v), "keep the one that shows where machines stand", "there is more than one tree")
				return
			}
			f.Fields(v, path+"tree.", []string{"switches"}, func(_ string, v *yaml.Node) { f.switches(path+"tree.switches", v) })
		})
	}
	if trees == 0 && len(f.Problems) == 0 {
		f.Wrong(muster.ReasonRequired, "tree", yamldoc.At(top), "write tree: and below it switches:", "none of the topologies is a tree")
	}
}

func (f *file) switches(path string, v *yaml.Node) {
	if v.Kind != yaml.SequenceNode {
		f.Wrong(muster.ReasonWrongType, path, yamldoc.At(v), "begin each with a dash", "a list of switches is expected")
		return
	}
	for i, n := range v.Content {
		if len(f.entries) > maxStands {
			return // finish says so
		}
		e := entry{field: fmt.Sprintf("%s[%d]", path, i), line: fmt.Sprintf("line %d", n.Line)}
		f.Fields(n, e.field+".", []string{"switch", "children", "nodes"}, func(name string, v *yaml.Node) {
			text := f.Text(e.field+"."+name, v)
			switch name {
			case "switch":
				e.Name = text
			case "children":
				e.children = text
			case "nodes":
				e.Machines = text
			}
		})
		if e.Name == "" && n.Kind == yaml.MappingNode {
			f.Wrong(muster.ReasonRequired, e.field+".switch", e.line, "name it: switch: s1", "the switch has no name")
		}
		f.entries = append(f.entries, e)
	}
}
