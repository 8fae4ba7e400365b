package configure

import (
	"slices"
	"strings"

	"github.com/muster-hpc/muster/wire"
)

// Incomplete reports which parts of a configuration could not be applied. All others
// are in force.
type Incomplete struct{ Parts []Part }

// Part is one part of a configuration that could not be applied, and why.
type Part struct {
	Name string
	Err  error
}

// Error names all parts.
func (e *Incomplete) Error() string {
	var out []string
	for _, p := range e.Parts {
		out = append(out, strings.TrimPrefix(p.Name+": "+p.Err.Error(), p.Name+": "+p.Name+": "))
	}
	return strings.Join(out, "; ")
}

// Unwrap gives the causes.
func (e *Incomplete) Unwrap() []error {
	var out []error
	for _, p := range e.Parts {
		out = append(out, p.Err)
	}
	return out
}

// Incomplete reports that the rest is in force: an agent that knows this package by
// its interface alone asks for it.
func (e *Incomplete) Incomplete() bool { return len(e.Parts) > 0 }

// add notes a part that failed.
func (e *Incomplete) add(name string, err error) {
	if err != nil {
		e.Parts = append(e.Parts, Part{name, err})
	}
}

// err is nil when nothing failed.
func (e *Incomplete) err() error {
	if e.Incomplete() {
		return e
	}
	return nil
}

// withoutUsers is the configuration without some people: nothing of theirs may be made,
// least of all a way in to an account of the image that has their name.
func withoutUsers(cfg *wire.NodeConfig, out func(wire.Account) bool) *wire.NodeConfig {
	c := *cfg
	c.Users = slices.DeleteFunc(slices.Clone(cfg.Users), out)
	return &c
}
