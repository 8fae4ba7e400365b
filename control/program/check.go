package program

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/muster-hpc/muster"
)

var nameForm = regexp.MustCompile(`^[a-z][a-z0-9._-]{0,39}$`)

// Bounds of a program.
const (
	mostCommand = 4096
	mostInputs  = 16
	mostArgs    = 64
)

// Check reports everything that is wrong with a program that somebody adds.
func Check(p muster.Program) []muster.Problem {
	var list []muster.Problem
	add := func(field string, why muster.Reason, hint, format string, args ...any) {
		list = append(list, muster.Problem{Field: field, Reason: why, Message: fmt.Sprintf(format, args...), Hint: hint})
	}
	failed := func(field string, e *muster.Error) {
		if e != nil {
			list = append(list, e.In(field))
		}
	}
	switch _, builtin := Builtin(p.Name); {
	case builtin:
		add("name", muster.ReasonNameReserved, "choose another name", "%s is a program that comes with Muster", p.Name)
	case !nameForm.MatchString(p.Name):
		add("name", muster.ReasonBadName, "small letters, digits, dots, hyphens and underscores, at most 40, a letter first", "%.64q cannot be the name of a program", p.Name)
	}
	if p.Image == "" || len(p.Image) > 200 {
		add("image", muster.ReasonRequired, "name the image that it runs in: muster image list", "the image is missing")
	}
	if strings.TrimSpace(p.Run) == "" {
		add("run", muster.ReasonRequired, "write the command that runs it: 'mpirun -n {ranks} ./program'", "the command is missing")
	}
	for field, text := range map[string]string{"run": p.Run, "build": p.Build} {
		if len(text) > mostCommand || !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
			add(field, muster.ReasonTooLarge, fmt.Sprintf("write at most %d bytes of UTF-8, or call a script", mostCommand), "the command is too long, or no text")
		}
	}
	if p.Check != "" {
		_, err := compile(p.Check)
		failed("check", err)
	}
	if p.Metric != nil {
		failed("metric", checkMetric(*p.Metric))
		if p.Metric.Better != muster.BetterHigher && p.Metric.Better != muster.BetterLower {
			add("better", muster.ReasonRequired, "write higher or lower", "it is not clear which figures are better")
		}
	}
	if len(p.Inputs) > mostInputs {
		add("inputs", muster.ReasonTooMany, fmt.Sprintf("name at most %d volumes", mostInputs), "there are %d inputs", len(p.Inputs))
	}
	for i, v := range p.Inputs {
		if slices.Contains(p.Inputs[:i], v) {
			add("inputs", muster.ReasonGivenTwice, "name it once", "volume %.64q stands there twice", v)
		}
	}
	for _, text := range []string{p.Run, p.Build} {
		for _, name := range unknownInputs(text, p.Inputs) {
			add("inputs", muster.ReasonRequired, "add --input with the volume's name, or correct the placeholder", "%s names no input of the program", name)
		}
	}
	slices.SortStableFunc(list, func(a, b muster.Problem) int { return strings.Compare(a.Field, b.Field) })
	return list
}
