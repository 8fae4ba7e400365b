package program

import (
	"fmt"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
)

// Folder is where the images that come with Muster have the built-in programs.
const Folder = "/usr/libexec/muster/"

// DefaultClass is the class of built-in programs where nobody says another.
const DefaultClass = "S"

// builtins are the programs that come with Muster. They print one JSON object, with mops and
// verified in it. A program without classes has options for each of them: sizes are in
// this table only.
func builtins() []builtin {
	npb := []string{"S", "W", "A", "B", "C", "D"}
	return []builtin{
		{name: "ep", classes: npb}, {name: "is", classes: npb}, {name: "cg", classes: npb}, {name: "mg", classes: npb},
		{name: "ft", classes: npb}, {name: "lu", classes: npb}, {name: "sp", classes: npb}, {name: "bt", classes: npb},
		{name: "farm", classes: []string{"S", "W", "A", "B", "C"}, options: map[string]string{
			"S": "--tasks 200 --mean-ms 5", "W": "--tasks 1000 --mean-ms 10", "A": "--tasks 10000 --mean-ms 10",
			"B": "--tasks 40000 --mean-ms 20", "C": "--tasks 200000 --mean-ms 50",
		}},
		{name: "lattice", classes: []string{"S", "W", "A", "B", "C"}, options: map[string]string{
			"S": "--size 8x8x8x16", "W": "--size 12x12x12x24", "A": "--size 16x16x16x32", "B": "--size 24x24x24x48", "C": "--size 32x32x32x64",
		}},
	}
}

type builtin struct {
	name    string
	classes []string
	options map[string]string // by class; nil: --class
}

// linpack is the name of HPL, which comes with Muster but is not of it.
const linpack = "hpl"

// FileOf is the file that a program needs of its image; "": none that is known before it runs.
func FileOf(p muster.Program) string {
	if !p.Builtin {
		return ""
	}
	return fileOf(p.Name)
}

// fileOf is the file of a built-in program.
func fileOf(name string) string {
	if name == linpack {
		return Folder + "xhpl"
	}
	if slices.ContainsFunc(probes(), func(p muster.Program) bool { return p.Name == name }) {
		return Folder + "muster-probe"
	}
	return Folder + "muster-" + name
}

func (b builtin) program() muster.Program {
	size := " --class {class}"
	if b.options != nil {
		size = " {options}"
	}
	return muster.Program{
		Name: b.name, Builtin: true,
		ProgramSpec: muster.ProgramSpec{
			Run:    "mpirun -n {ranks} " + Folder + "muster-" + b.name + size + " --json",
			Check:  `"verified": ?true`,
			Metric: &muster.ProgramMetric{Name: "mops", Unit: "Mop/s", Pattern: `"mops": ?([-+0-9.eE]+)`, Better: muster.BetterHigher},
		},
	}
}

// Builtins are the programs that come with Muster, by name.
func Builtins() []muster.Program {
	list := append(probes(), hpl())
	for _, b := range builtins() {
		list = append(list, b.program())
	}
	slices.SortFunc(list, func(a, b muster.Program) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// Builtin is the built-in program of that name.
func Builtin(name string) (muster.Program, bool) {
	for _, p := range append(probes(), hpl()) {
		if p.Name == name {
			return p, true
		}
	}
	for _, b := range builtins() {
		if b.name == name {
			return b.program(), true
		}
	}
	return muster.Program{}, false
}

// optionsOf are what a built-in program is given for a class.
func optionsOf(name, class string) string {
	for _, b := range builtins() {
		if b.name == name {
			return b.options[class]
		}
	}
	return ""
}

// checkClass reports what is wrong with the class for a built-in program; nil: nothing.
func checkClass(name, class string) *muster.Problem {
	if name == linpack && class != DefaultClass {
		return &muster.Problem{Field: "class", Reason: muster.ReasonBadValue, Message: "hpl has no classes", Hint: "leave it out, and give N NB P Q as arguments"}
	}
	if class != DefaultClass && slices.ContainsFunc(probes(), func(p muster.Program) bool { return p.Name == name }) {
		return &muster.Problem{Field: "class", Reason: muster.ReasonBadValue, Message: name + " has no classes", Hint: "leave it out"}
	}
	for _, b := range builtins() {
		if b.name == name && !slices.Contains(b.classes, class) {
			return &muster.Problem{Field: "class", Reason: muster.ReasonBadValue, Message: fmt.Sprintf("%s has no class %.40q", name, class),
				Hint: "write one of " + strings.Join(b.classes, ", ")}
		}
	}
	return nil
}
