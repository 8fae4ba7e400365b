package image

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	muster "github.com/muster-hpc/muster"
)

// Book finds recipes by name: NAME.yaml in the first file system that has it,
// so that a site's own recipes stand before those that come with Muster.
type Book struct {
	shelves []fs.FS
}

// NewBook makes a book of the given file systems, first one first.
func NewBook(shelves ...fs.FS) *Book { return &Book{shelves: shelves} }

// Names lists the recipes that can be built, sorted.
func (b *Book) Names() []string {
	var names []string
	for _, n := range b.all() {
		if rec, err := b.Load(n); err == nil && !rec.Abstract {
			names = append(names, n)
		}
	}
	return names
}

func (b *Book) all() []string {
	var names []string
	for _, s := range b.shelves {
		files, _ := fs.Glob(s, "*.yaml") // the pattern is valid: no other error
		for _, f := range files {
			names = append(names, strings.TrimSuffix(f, ".yaml"))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Load reads a recipe and what it extends, ready to build. It returns ENotFound
// for an unknown name and EInvalid with every problem for a bad recipe.
func (b *Book) Load(name string) (*Recipe, error) {
	rec, err := b.read(name)
	if err != nil {
		return nil, err
	}
	return b.Resolve(rec)
}

// Resolve fills in what a decoded recipe extends and its defaults, and checks
// that nothing is missing.
func (b *Book) Resolve(rec *Recipe) (*Recipe, error) {
	trail := []string{rec.Name}
	for rec.Extends != "" {
		up := rec.Extends
		if slices.Contains(trail, up) {
			return nil, refuse(trail[0], []muster.Problem{{Field: "extends", Reason: muster.ReasonContradiction, Message: "goes in a circle: " + strings.Join(append(trail, up), " -> ")}})
		}
		trail = append(trail, up)
		parent, err := b.read(up)
		if muster.CodeOf(err) == muster.ENotFound {
			return nil, refuse(trail[0], []muster.Problem{{Field: "extends", Reason: muster.ReasonNoSuchRecipe, Message: fmt.Sprintf("there is no recipe %q", up), Hint: didYouMean(up, b.all())}})
		}
		if err != nil {
			return nil, err
		}
		rec = extend(rec, parent)
	}
	settle(rec)
	problems := complete(rec)
	if rec.Abstract {
		problems = nil // only checked when built
	}
	if len(problems) > 0 {
		return nil, refuse(trail[0], problems)
	}
	return rec, nil
}

func (b *Book) read(name string) (*Recipe, error) {
	if !recipeName.MatchString(name) {
		return nil, muster.Errorf(muster.EInvalid, "%q cannot name a recipe", clip(name)).Because(muster.ReasonBadName).WithHint("lower-case letters, digits and '-'")
	}
	for _, s := range b.shelves {
		data, err := fs.ReadFile(s, name+".yaml")
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, muster.Errorf(muster.EUnavailable, "recipe %s cannot be read: %v", name, err).Because(muster.ReasonFileUnreadable).Wrap(err)
		}
		rec, err := Decode(name+".yaml", data)
		if err != nil {
			return nil, err
		}
		if rec.Name != name {
			return nil, refuse(name+".yaml", []muster.Problem{{Field: "name", Message: fmt.Sprintf("is %q, but the file is %s.yaml", rec.Name, name)}})
		}
		if problems := b.bring(rec); len(problems) > 0 {
			return nil, refuse(name+".yaml", problems)
		}
		return rec, nil
	}
	e := muster.Errorf(muster.ENotFound, "there is no recipe %q", name).Because(muster.ReasonNoSuchRecipe)
	if s := didYouMean(name, b.all()); s != "" {
		return nil, e.WithHint("%s", s)
	}
	return nil, e.WithHint("recipes: %s", strings.Join(b.all(), ", "))
}

// extend lays child over parent: lists grow, single fields are replaced, a file
// or account of the same name is replaced.
func extend(child, parent *Recipe) *Recipe {
	out := *child
	out.Extends = parent.Extends
	out.set = map[string]bool{}
	for k := range parent.set {
		out.set[k] = true
	}
	for k := range child.set {
		out.set[k] = true
	}
	inherit := func(name string, copyField func()) {
		if !child.set[name] {
			copyField()
		}
	}
	inherit("summary", func() { out.Summary = parent.Summary })
	inherit("base.distribution", func() { out.Base.Distribution = parent.Base.Distribution })
	inherit("base.suite", func() { out.Base.Suite = parent.Base.Suite })
	inherit("base.components", func() { out.Base.Components = parent.Base.Components })
	inherit("base.mirror", func() { out.Base.Mirror = parent.Base.Mirror })
	inherit("base.security-mirror", func() { out.Base.SecurityMirror = parent.Base.SecurityMirror })
	inherit("kernel", func() { out.Kernel = parent.Kernel })
	inherit("user_root", func() { out.UserRoot = parent.UserRoot })
	inherit("scheduler", func() { out.Scheduler = parent.Scheduler })
	inherit("agent", func() { out.Agent = parent.Agent })
	inherit("requires.architecture", func() { out.Requires.Architecture = parent.Requires.Architecture })
	inherit("requires.cpu_level", func() { out.Requires.CPULevel = parent.Requires.CPULevel })
	inherit("requires.memory", func() { out.Requires.Memory = parent.Requires.Memory })

	out.Requires.Devices = append(slices.Clone(parent.Requires.Devices), child.Requires.Devices...)
	out.Packages = append(slices.Clone(parent.Packages), child.Packages...)
	out.Commands = append(slices.Clone(parent.Commands), child.Commands...)
	out.Keep = append(slices.Clone(parent.Keep), child.Keep...)
	out.Mask = append(slices.Clone(parent.Mask), child.Mask...)
	out.Exclude = append(slices.Clone(parent.Exclude), child.Exclude...)
	out.Trim = append(slices.Clone(parent.Trim), child.Trim...)
	out.NSMasks = append(slices.Clone(parent.NSMasks), child.NSMasks...)
	out.Files = overlayBy(parent.Files, child.Files, func(f File) string { return f.Path })
	out.Accounts = overlayBy(parent.Accounts, child.Accounts, func(a Account) string { return a.Name })
	return &out
}

func overlayBy[T any](under, over []T, key func(T) string) []T {
	out := slices.Clone(under)
	for _, o := range over {
		if i := slices.IndexFunc(out, func(u T) bool { return key(u) == key(o) }); i >= 0 {
			out[i] = o
		} else {
			out = append(out, o)
		}
	}
	return out
}
