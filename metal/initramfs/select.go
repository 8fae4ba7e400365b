package initramfs

import (
	"path"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
)

// chosen is a module of the archive.
type chosen struct {
	file string // below lib/modules/RELEASE, without a compression's ending
	info modinfo
	data []byte
}

// choose takes the wanted modules and all that they need, hard or soft.
func (m *Modules) choose(wanted func(string) bool) (map[string]*chosen, error) {
	files := map[string]string{} // of modules by name
	var queue []string
	for _, file := range m.names() {
		name := moduleName(file)
		if _, twice := files[name]; !twice {
			files[name] = file
		}
		if wanted(file) {
			queue = append(queue, name)
		}
	}
	out := map[string]*chosen{}
	for len(queue) > 0 {
		name := queue[0]
		queue = queue[1:]
		file, ok := files[name]
		if !ok || out[name] != nil {
			continue // in the kernel itself, or not for this architecture
		}
		data, err := m.module(file)
		if err != nil {
			return nil, err
		}
		info, err := readModinfo(data)
		if err != nil {
			return nil, muster.Errorf(muster.ECorrupt, "the kernel's module %s: %v", path.Base(file), err).Wrap(err)
		}
		if info.release != "" && info.release != m.Release {
			return nil, muster.Errorf(muster.EInvalid, "the module %s is for the kernel %s, not %s", name, info.release, m.Release).
				WithHint("build the image again")
		}
		base, _, _ := strings.Cut(file, ".ko")
		out[name] = &chosen{file: base + ".ko", info: info, data: data}
		queue = append(queue, info.depends...)
		for _, s := range info.softdep {
			queue = append(queue, softNames(s)...)
		}
	}
	return out, nil
}

// softNames are the modules named by a soft dependency.
func softNames(s string) []string {
	var out []string
	for w := range strings.FieldsSeq(s) {
		if !strings.HasSuffix(w, ":") {
			out = append(out, canonical(w))
		}
	}
	return out
}

// needs lists the files of what a module needs, so that each one comes before
// those that it needs itself: loaded from the last to the first.
func needs(all map[string]*chosen, name string) []string {
	var order []string
	seen := map[string]bool{name: true}
	var visit func(string)
	visit = func(n string) {
		for _, d := range all[n].info.depends {
			if all[d] != nil && !seen[d] {
				seen[d] = true
				visit(d)
				order = append(order, all[d].file)
			}
		}
	}
	visit(name)
	slices.Reverse(order)
	return order
}

// tables writes modules.dep, .alias and .softdep of what was chosen, in the forms
// of depmod.
func tables(all map[string]*chosen) (dep, alias, softdep string) {
	names := make([]string, 0, len(all))
	for n := range all {
		names = append(names, n)
	}
	slices.Sort(names)
	var d, a, s strings.Builder
	for _, n := range names {
		c := all[n]
		d.WriteString(c.file + ":")
		for _, f := range needs(all, n) {
			d.WriteString(" " + f)
		}
		d.WriteByte('\n')
		for _, p := range c.info.alias {
			a.WriteString("alias " + p + " " + n + "\n")
		}
		for _, p := range c.info.softdep {
			s.WriteString("softdep " + n + " " + p + "\n")
		}
	}
	return d.String(), a.String(), s.String()
}
