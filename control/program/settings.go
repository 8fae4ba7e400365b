package program

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
)

var envForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,99}$`)

// Bounds of settings.
const (
	mostEnv     = 64
	mostThreads = 1 << 16
)

// CheckSettings reports everything that is wrong with how processes are to begin.
func CheckSettings(s muster.RunSettings) []muster.Problem {
	var list []muster.Problem
	add := func(field string, why muster.Reason, hint, format string, args ...any) {
		list = append(list, muster.Problem{Field: field, Reason: why, Message: fmt.Sprintf(format, args...), Hint: hint})
	}
	if s.Threads < 0 || s.Threads > mostThreads {
		add("threads", muster.ReasonOutOfRange, "give at least 1", "a rank cannot have %d threads", s.Threads)
	}
	if s.Binding != "" && bindings(s.Binding) == nil {
		add("binding", muster.ReasonBadValue, "write none, core or socket", "%.40q is no binding", s.Binding)
	}
	if len(s.Env) > mostEnv {
		add("env", muster.ReasonTooMany, fmt.Sprintf("give at most %d", mostEnv), "there are %d variables", len(s.Env))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		if !envForm.MatchString(name) || len(s.Env[name]) > mostCommand || strings.ContainsAny(s.Env[name], "\n\r\x00") {
			add("env", muster.ReasonBadValue, "letters, digits and underscores for the name, one line for the value", "%.40q cannot be set so", name)
		}
	}
	return list
}

// bindings are what the launchers call a binding: Open MPI 4 and 5, srun, and MPICH's Hydra, whose words
// are those of a run.
func bindings(name string) map[string]string {
	words := map[string][3]string{"none": {"none", "none", "none"}, "core": {"core", "core", "cores"}, "socket": {"socket", "package", "sockets"}}
	w, ok := words[name]
	if !ok {
		return nil
	}
	return map[string]string{"OMPI_MCA_hwloc_base_binding_policy": w[0], "PRTE_MCA_hwloc_default_binding_policy": w[1], "SLURM_CPU_BIND": w[2], "HYDRA_BINDING": name}
}

// preamble are the commands before those of a program. What the settings name by hand comes last.
func preamble(s muster.RunSettings) string {
	var b strings.Builder
	env := map[string]string{}
	binding := s.Binding
	if s.Threads > 1 {
		env["OMP_NUM_THREADS"] = fmt.Sprint(s.Threads)
		if binding == "" {
			binding = "none" // else all threads of a rank share the core that MPI binds it to
		}
	}
	maps.Copy(env, bindings(binding))
	maps.Copy(env, s.Env)
	for _, name := range slices.Sorted(maps.Keys(env)) {
		fmt.Fprintf(&b, "export %s=%s\n", name, quote(env[name]))
	}
	return b.String()
}
