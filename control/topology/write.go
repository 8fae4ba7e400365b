package topology

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/nodeset"
	"go.yaml.in/yaml/v3"
)

// Write writes stands in a format; Read reads them again. What Slurm's formats have no
// words for is left out: kinds, capacities, and stands without machines.
func Write(stands []muster.Stand, format string) (string, error) {
	switch format {
	case FormatMuster:
		return own(stands), nil
	case FormatConf:
		return conf(stands), nil
	case FormatYAML:
		return slurmYAML(stands)
	}
	return "", muster.Errorf(muster.EInvalid, "%.40q is not a format of topologies", format).Because(muster.ReasonUnknownFormat).WithHint("there are: %s", strings.Join(Formats(), ", "))
}

func own(stands []muster.Stand) string {
	var b strings.Builder
	b.WriteString("stands:\n")
	for _, s := range stands {
		fmt.Fprintf(&b, "  - name: %s\n    kind: %s\n", scalar(s.Name), s.Kind)
		if s.In != "" {
			fmt.Fprintf(&b, "    in: %s\n", scalar(s.In))
		}
		if s.Uplink > 0 {
			fmt.Fprintf(&b, "    uplink: %s\n", UplinkText(s))
		}
		if s.Delay > 0 {
			fmt.Fprintf(&b, "    delay: %s\n", delayText(time.Duration(s.Delay)))
		}
		if s.Link > 0 {
			fmt.Fprintf(&b, "    link: %s\n", Rate(s.Link))
		}
		if s.Machines != "" {
			fmt.Fprintf(&b, "    machines: %q\n", s.Machines)
		}
	}
	return b.String()
}

// scalar quotes names that YAML would take for something else.
func scalar(name string) string {
	if b, err := yaml.Marshal(name); err == nil {
		return strings.TrimSpace(string(b))
	}
	return name
}

// UplinkText is the capacity of an uplink as files have it: 4 x 10Gb/s.
func UplinkText(s muster.Stand) string {
	if s.Cables > 1 && s.Uplink%int64(s.Cables) == 0 {
		return fmt.Sprintf("%d x %s", s.Cables, Rate(s.Uplink/int64(s.Cables)))
	}
	return Rate(s.Uplink)
}

// LinkText is an uplink with its delay, for people.
func LinkText(s muster.Stand) string {
	switch {
	case s.Delay == 0 && s.Uplink == 0:
		return ""
	case s.Delay == 0:
		return UplinkText(s)
	case s.Uplink == 0:
		return delayText(time.Duration(s.Delay))
	}
	return UplinkText(s) + ", " + delayText(time.Duration(s.Delay))
}

// delayText is a delay as files have it: 500us.
func delayText(d time.Duration) string { return strings.ReplaceAll(d.String(), "µ", "u") }

// Rate is a rate as files have it, exactly: 10Gb/s, 1500Mb/s.
func Rate(bps int64) string {
	for _, u := range []struct {
		name  string
		value int64
	}{{"Tb/s", 1e12}, {"Gb/s", 1e9}, {"Mb/s", 1e6}, {"Kb/s", 1e3}} {
		if bps >= u.value && bps%u.value == 0 {
			return fmt.Sprintf("%d%s", bps/u.value, u.name)
		}
	}
	return fmt.Sprintf("%db/s", bps)
}

// slurmSwitch is a switch as Slurm has it: with nodes, or with switches.
type slurmSwitch struct{ name, nodes, switches string }

// slurmSwitches are the stands as switches of Slurm, the innermost first. A stand with
// both machines and stands gets a switch of its own for the machines.
func slurmSwitches(stands []muster.Stand) []slurmSwitch {
	below := map[string][]int{}
	taken := map[string]bool{}
	for i, s := range stands {
		below[s.In] = append(below[s.In], i)
		taken[s.Name] = true
	}
	var out []slurmSwitch
	var walk func(i int) bool // reports whether machines are below
	walk = func(i int) bool {
		s := stands[i]
		var names []string
		for _, c := range below[s.Name] {
			if walk(c) {
				names = append(names, stands[c].Name)
			}
		}
		if s.Machines != "" && len(names) > 0 {
			direct := s.Name + "-direct"
			for n := 2; taken[direct]; n++ {
				direct = fmt.Sprintf("%s-direct%d", s.Name, n)
			}
			taken[direct] = true
			out = append(out, slurmSwitch{name: direct, nodes: s.Machines})
			names = append(names, direct)
		}
		switch {
		case len(names) > 0:
			out = append(out, slurmSwitch{name: s.Name, switches: nodeset.Fold(names)})
		case s.Machines != "":
			out = append(out, slurmSwitch{name: s.Name, nodes: s.Machines})
		default:
			return false
		}
		return true
	}
	for _, i := range below[""] {
		walk(i)
	}
	return out
}

func conf(stands []muster.Stand) string {
	var b strings.Builder
	for _, s := range slurmSwitches(stands) {
		fmt.Fprintf(&b, "SwitchName=%s ", s.name)
		if s.nodes != "" {
			fmt.Fprintf(&b, "Nodes=%s\n", s.nodes)
		} else {
			fmt.Fprintf(&b, "Switches=%s\n", s.switches)
		}
	}
	return b.String()
}

func slurmYAML(stands []muster.Stand) (string, error) {
	type sw struct {
		Switch   string `yaml:"switch"`
		Children string `yaml:"children,omitempty"`
		Nodes    string `yaml:"nodes,omitempty"`
	}
	type tree struct {
		Switches []sw `yaml:"switches"`
	}
	type topology struct {
		Topology string `yaml:"topology"`
		Default  bool   `yaml:"cluster_default"`
		Tree     tree   `yaml:"tree"`
	}
	t := topology{Topology: "muster", Default: true}
	for _, s := range slices.Backward(slurmSwitches(stands)) {
		t.Tree.Switches = append(t.Tree.Switches, sw{s.name, s.switches, s.nodes})
	}
	b, err := yaml.Marshal([]topology{t})
	if err != nil {
		return "", muster.Errorf(muster.EInternal, "cannot write the topology").Wrap(err)
	}
	return "---\n" + string(b), nil
}
