package admit

import (
	"strings"

	"github.com/muster-hpc/muster/internal/pcinames"
	"github.com/muster-hpc/muster/internal/wildcard"
)

// globs matches patterns against the names of a site, which are few though its
// machines are many: each pair is computed once.
type globs struct {
	seen  map[globKey]bool
	names map[string]string // of accelerators, by their numbers
}

type globKey struct {
	pattern, name string
	model         bool
}

// name reports whether the whole name matches: "*" is any text, "?" any one
// character; letters match in either case.
func (g *globs) name(pattern, name string) bool {
	return g.memo(globKey{pattern, name, false})
}

// model is like name, for the model names of parts: a pattern may begin at any
// word ("EPYC*" matches "AMD EPYC 7763"), and one without wildcards may stand
// anywhere.
func (g *globs) model(pattern, name string) bool {
	return g.memo(globKey{pattern, name, true})
}

// accelerator is like model, for what says but its numbers on the bus: they may match, or
// its name.
func (g *globs) accelerator(pattern, model string) bool {
	name, known := g.names[model]
	if !known {
		name = pcinames.Accelerator(model)
		if g.names == nil {
			g.names = map[string]string{}
		}
		g.names[model] = name
	}
	return g.model(pattern, model) || name != "" && g.model(pattern, name)
}

func (g *globs) memo(k globKey) bool {
	if m, ok := g.seen[k]; ok {
		return m
	}
	pattern, name := strings.ToLower(k.pattern), strings.ToLower(k.name)
	m := wildcard.Match(pattern, name)
	if k.model && !m {
		if !strings.ContainsAny(pattern, "*?") {
			m = strings.Contains(name, pattern)
		}
		for i := 1; i < len(name) && !m; i++ {
			if name[i-1] == ' ' && name[i] != ' ' {
				m = wildcard.Match(pattern, name[i:])
			}
		}
	}
	if g.seen == nil {
		g.seen = make(map[globKey]bool)
	}
	g.seen[k] = m
	return m
}
