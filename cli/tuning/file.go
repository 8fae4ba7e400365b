package tuning

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// Subject is what is tuned, and how it is launched.
type Subject struct {
	Project string
	// Cluster is its ID, so that another one of the same name is another experiment.
	Cluster string
	Program string
	Class   string
	Ranks   int
	Args    []string
	// Timeout ends a launch, and Discard are the rules by which one does not count.
	Timeout string
	Discard []string
}

type file struct {
	Name     string           `yaml:"name"`
	Project  string           `yaml:"project"`
	Cluster  string           `yaml:"cluster"`
	Matrix   map[string]any   `yaml:"matrix"`
	Exclude  []map[string]any `yaml:"exclude,omitempty"`
	Launches int              `yaml:"launches"`
	Timeout  string           `yaml:"timeout"`
	Discard  []string         `yaml:"discard"`
}

// usual is how an experiment writes that a factor is as it is without it.
const usual = "default"

// File is the file of the experiment that launches each cell so often. The same gives the same file.
func File(name string, s Subject, cells []Setting, launches int) string {
	f := file{Name: name, Project: s.Project, Cluster: s.Cluster, Launches: launches, Timeout: s.Timeout, Discard: s.Discard, Matrix: map[string]any{"program": s.Program}}
	if f.Discard == nil {
		f.Discard = []string{}
	}
	if s.Class != "" {
		f.Matrix["class"] = s.Class
	}
	if s.Ranks > 0 {
		f.Matrix["ranks"] = s.Ranks
	}
	if len(s.Args) > 0 {
		f.Matrix["args"] = s.Args
	}
	// What is varied, each value once; combinations that are no cell are left out.
	var envs, perNodes []any
	var envKeys []string
	var perNodeOf []int
	wanted := map[[2]int]bool{}
	for _, c := range cells {
		key := Setting{Env: c.Env}.Key()
		e := indexOf(envKeys, key)
		if e == len(envs) {
			envKeys = append(envKeys, key)
			envs = append(envs, valueOf(len(c.Env) > 0, c.Env))
		}
		n := indexOf(perNodeOf, c.PerNode)
		if n == len(perNodes) {
			perNodeOf = append(perNodeOf, c.PerNode)
			perNodes = append(perNodes, valueOf(c.PerNode > 0, c.PerNode))
		}
		wanted[[2]int{e, n}] = true
	}
	if len(envs) > 1 {
		f.Matrix["env"] = envs
	}
	if len(perNodes) > 1 {
		f.Matrix["ranks_per_node"] = perNodes
	}
	for e, env := range envs {
		for n, perNode := range perNodes {
			if !wanted[[2]int{e, n}] {
				f.Exclude = append(f.Exclude, map[string]any{"env": env, "ranks_per_node": perNode})
			}
		}
	}
	var b strings.Builder
	b.WriteString("# A stage of muster program tune.\n")
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(f); err != nil {
		return "" // a string builder takes everything, and these types can be written
	}
	return b.String()
}

func valueOf(set bool, v any) any {
	if set {
		return v
	}
	return usual
}

// indexOf is the place of v, or that behind the last.
func indexOf[T comparable](list []T, v T) int {
	for i, w := range list {
		if w == v {
			return i
		}
	}
	return len(list)
}
