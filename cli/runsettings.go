package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/spf13/cobra"
)

// runSettings are the flags of how the processes of a run begin.
type runSettings struct {
	threads int
	bind    string
	env     []string
}

func (s *runSettings) addTo(c *cobra.Command) {
	flags := c.Flags()
	flags.IntVar(&s.threads, "threads", 0, "cores of each rank, and OMP_NUM_THREADS (default: 1)")
	flags.StringVar(&s.bind, "bind", "", "to what MPI and srun bind a rank: none, core or socket (default: as they do by themselves; with threads, none)")
	flags.StringArrayVar(&s.env, "env", nil, "set NAME=VALUE in the environment of build and run; repeatable; is on record")
	_ = c.RegisterFlagCompletionFunc("bind", cobra.FixedCompletions([]string{"none", "core", "socket"}, cobra.ShellCompDirectiveNoFileComp))
	for _, name := range []string{"threads", "env"} {
		_ = c.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
}

// positive refuses counts that were given and are none: 0 is what a flag is that was left out, and is
// not taken for it.
func positive(c *cobra.Command, flags ...string) error {
	var problems []muster.Problem
	for _, name := range flags {
		if f := c.Flags().Lookup(name); f != nil && f.Changed && f.Value.String() == "0" {
			problems = append(problems, muster.Problem{Field: name, Reason: muster.ReasonOutOfRange, Message: "it cannot be 0", Hint: "give at least 1, or leave --" + name + " out"})
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return muster.Errorf(muster.EInvalid, "the program cannot run so").Because(muster.ReasonHasProblems).Listing(problems)
}

// settings are what the flags say. Whether the values are good is the server's to say: only what
// cannot be sent is refused, all of it at once.
func (s *runSettings) settings() (muster.RunSettings, error) {
	out := muster.RunSettings{Threads: s.threads, Binding: s.bind}
	var problems []muster.Problem
	for _, text := range s.env {
		name, value, ok := strings.Cut(text, "=")
		switch _, twice := out.Env[name]; {
		case !ok:
			problems = append(problems, muster.Problem{Field: "env", Reason: muster.ReasonBadSyntax, Message: fmt.Sprintf("%.40q has no value", text), Hint: "write --env NAME=VALUE"})
		case twice:
			problems = append(problems, muster.Problem{Field: "env", Reason: muster.ReasonGivenTwice, Message: fmt.Sprintf("%.40q is set twice", name), Hint: "set it once"})
		case out.Env == nil:
			out.Env = map[string]string{name: value}
		default:
			out.Env[name] = value
		}
	}
	if len(problems) > 0 {
		return out, muster.Errorf(muster.EInvalid, "the environment of the run cannot be read").Because(muster.ReasonHasProblems).Listing(problems)
	}
	return out, nil
}

// settingsText is how the processes of a run began: "threads=2 bind=core OMP_PLACES=cores"; "" as
// they do without settings.
func settingsText(s muster.RunSettings) string {
	var parts []string
	if s.Threads > 0 {
		parts = append(parts, fmt.Sprintf("threads=%d", s.Threads))
	}
	if s.Binding != "" {
		parts = append(parts, "bind="+s.Binding)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		parts = append(parts, name+"="+quote(s.Env[name]))
	}
	return strings.Join(parts, " ")
}
