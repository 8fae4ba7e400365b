package boot

import (
	"path"
	"slices"
	"strings"

	"github.com/muster-hpc/muster/internal/wildcard"
)

// Table is what is known of the modules of a kernel: the files modules.dep,
// .alias, .softdep and .builtin.
type Table struct {
	files   map[string]string   // by name, below the folder
	needs   map[string][]string // names, to be loaded from the last to the first
	soft    map[string][]string // names that are loaded before, if they can be
	after   map[string][]string // and after
	builtin map[string]bool
	aliases map[string][]alias // by what stands before the first colon
}

// alias is a pattern of devices and the module for them.
type alias struct{ pattern, module string }

// ParseTable reads the four files. Lines that make no sense are left out.
func ParseTable(dep, aliases, softdep, builtin string) *Table {
	t := &Table{
		files: map[string]string{}, needs: map[string][]string{}, soft: map[string][]string{}, after: map[string][]string{},
		builtin: map[string]bool{}, aliases: map[string][]alias{},
	}
	for line := range strings.Lines(dep) {
		file, rest, ok := strings.Cut(strings.TrimSpace(line), ":")
		name := nameOf(file)
		if !ok || name == "" || !local(file) {
			continue
		}
		t.files[name] = file
		for f := range strings.FieldsSeq(rest) {
			if n := nameOf(f); n != "" && n != name {
				t.needs[name] = append(t.needs[name], n)
			}
		}
	}
	for line := range strings.Lines(aliases) {
		f := strings.Fields(line)
		if len(f) == 3 && f[0] == "alias" && !strings.HasPrefix(f[0], "#") {
			bus, _, _ := strings.Cut(f[1], ":")
			t.aliases[bus] = append(t.aliases[bus], alias{f[1], canonical(f[2])})
		}
	}
	for line := range strings.Lines(softdep) {
		f := strings.Fields(line)
		if len(f) < 3 || f[0] != "softdep" {
			continue
		}
		into := (map[string][]string)(nil)
		for _, w := range f[2:] {
			switch {
			case w == "pre:":
				into = t.soft
			case w == "post:":
				into = t.after
			case into != nil:
				into[canonical(f[1])] = append(into[canonical(f[1])], canonical(w))
			}
		}
	}
	for line := range strings.Lines(builtin) {
		if n := nameOf(strings.TrimSpace(line)); n != "" {
			t.builtin[n] = true
		}
	}
	return t
}

// local reports whether a file is below the folder, and only once.
func local(file string) bool {
	return file != "" && !strings.HasPrefix(file, "/") && path.Clean(file) == file && !strings.HasPrefix(file, "..")
}

// nameOf is the name of the module in a file.
func nameOf(file string) string {
	base, _, ok := strings.Cut(path.Base(file), ".ko")
	if !ok {
		return ""
	}
	return canonical(base)
}

// canonical is the one form of a module's name.
func canonical(name string) string { return strings.ReplaceAll(name, "-", "_") }

// For lists the modules for a device, by its modalias, in the order of the table.
// A module can be named by itself, too.
func (t *Table) For(modalias string) []string {
	var out []string
	bus, _, colon := strings.Cut(modalias, ":")
	for _, a := range t.aliases[bus] {
		if !slices.Contains(out, a.module) && wildcard.Match(a.pattern, modalias) {
			out = append(out, a.module)
		}
	}
	if len(out) == 0 && !colon && t.files[canonical(modalias)] != "" {
		out = append(out, canonical(modalias))
	}
	return out
}

// Order lists the files to load for a module, in order, and whether the module is
// there at all. One that is built in needs nothing.
func (t *Table) Order(name string) (files []string, ok bool) {
	return t.order(canonical(name), map[string]bool{})
}

func (t *Table) order(name string, seen map[string]bool) (files []string, ok bool) {
	if t.builtin[name] {
		return nil, true
	}
	if t.files[name] == "" {
		return nil, false
	}
	if seen[name] {
		return nil, true
	}
	seen[name] = true
	for _, n := range t.soft[name] {
		more, _ := t.order(n, seen)
		files = append(files, more...)
	}
	for _, n := range slices.Backward(t.needs[name]) {
		more, there := t.order(n, seen)
		if !there {
			return nil, false
		}
		files = append(files, more...)
	}
	files = append(files, t.files[name])
	for _, n := range t.after[name] {
		more, _ := t.order(n, seen)
		files = append(files, more...)
	}
	return files, true
}
