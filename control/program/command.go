package program

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-hpc/muster"
)

// Factors are what a run of a program varies.
type Factors struct {
	Ranks   int
	Nodes   int
	PerNode int
	Class   string
	Args    []string
	// Inputs are where the inputs of the program are mounted, by volume.
	Inputs map[string]string
}

var placeholder = regexp.MustCompile(`\$?\{(?:ranks|ranks_per_node|nodes|class|options|args|input(?::[A-Za-z0-9._-]+)?)\}`)

// classForm is a class that a shell reads as it is.
var classForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]{0,31}$`)

// Fill puts the factors into a command. Braces that are no placeholder stay, and so does
// ${ranks}, which is a variable of the shell.
func Fill(p muster.Program, command string, f Factors) string {
	return placeholder.ReplaceAllStringFunc(command, func(found string) string {
		switch found {
		case "{ranks}":
			return strconv.Itoa(f.Ranks)
		case "{ranks_per_node}":
			return strconv.Itoa(f.PerNode)
		case "{nodes}":
			return strconv.Itoa(f.Nodes)
		case "{class}":
			return f.Class
		case "{options}":
			return optionsOf(p.Name, f.Class)
		case "{args}":
			return quoteAll(f.Args)
		case "{input}":
			if len(p.Inputs) > 0 {
				return quote(f.Inputs[p.Inputs[0]])
			}
		default:
			if name, ok := inputOf(found); ok && f.Inputs[name] != "" {
				return quote(f.Inputs[name])
			}
		}
		return found
	})
}

func inputOf(found string) (name string, ok bool) {
	name, ok = strings.CutPrefix(strings.TrimSuffix(found, "}"), "{input:")
	return name, ok
}

// unknownInputs are the placeholders of inputs that the program does not have.
func unknownInputs(command string, inputs []string) (list []string) {
	for _, found := range placeholder.FindAllString(command, -1) {
		name, named := inputOf(found)
		switch {
		case found == "{input}" && len(inputs) == 0:
			list = append(list, found)
		case named && !slices.Contains(inputs, name):
			list = append(list, found)
		}
	}
	return list
}

// uses reports whether the program's commands have a placeholder.
func uses(p muster.Program, name string) bool {
	return slices.Contains(placeholder.FindAllString(p.Run+"\n"+p.Build, -1), name)
}

// stackForm is the name of a stack, as a module may have it.
var stackForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$`)

// CheckFactors reports everything that is wrong with what a run is to vary.
func CheckFactors(p muster.Program, class, stack string, args []string) []muster.Problem {
	var list []muster.Problem
	add := func(field string, why muster.Reason, hint, format string, args ...any) {
		list = append(list, muster.Problem{Field: field, Reason: why, Message: fmt.Sprintf(format, args...), Hint: hint})
	}
	switch {
	case p.Builtin:
		if bad := checkClass(p.Name, class); bad != nil {
			list = append(list, *bad)
		}
		if p.Name == linpack {
			if bad := checkHPL(args); bad != nil {
				list = append(list, *bad)
			}
		}
	case class == "" && uses(p, "{class}"):
		add("class", muster.ReasonRequired, "say which with --class", "%s has classes", p.Name)
	case class != "" && !uses(p, "{class}"):
		add("class", muster.ReasonContradiction, "leave it out, or write {class} into the command", "%s has no classes", p.Name)
	case class != "" && !classForm.MatchString(class):
		add("class", muster.ReasonBadValue, "letters, digits, dots, hyphens, plus and underscores, at most 32", "%.40q cannot be a class", class)
	}
	switch {
	case stack == "":
	case p.Builtin:
		add("stack", muster.ReasonContradiction, "add a program that is built before it runs: muster program add --build", "%s is compiled already, with its image's own MPI", p.Name)
	case !stackForm.MatchString(stack):
		add("stack", muster.ReasonBadValue, "write it as `module avail stack` does on a node, after the slash", "%.64q cannot be a stack", stack)
	}
	if len(args) > 0 && !uses(p, "{args}") {
		add("args", muster.ReasonContradiction, "leave them out, or write {args} into the command", "%s takes no arguments", p.Name)
	}
	size := 0
	for _, a := range args {
		size += len(a)
	}
	if len(args) > mostArgs || size > mostCommand {
		add("args", muster.ReasonTooMany, fmt.Sprintf("give at most %d, of %d bytes together", mostArgs, mostCommand), "there are %d arguments of %d bytes", len(args), size)
	}
	return list
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func quoteAll(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = quote(w)
	}
	return strings.Join(quoted, " ")
}
