package cli

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// In bash, where "@" ends a word, the version of an image is completed behind it.
func TestBashCompletesVersions(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash")
	}
	var script strings.Builder
	root := &cobra.Command{Use: "muster", RunE: func(*cobra.Command, []string) error { return nil }}
	if err := bashScript(root, &script, true); err != nil {
		t.Fatal(err)
	}
	// As the package bash-completion does: what the option -n excludes ends no word.
	script.WriteString(`
_get_comp_words_by_ref() {
	case $2 in
	*@*) words=(muster create x --image hpc@2026) cur=hpc@2026 ;;
	*) words=(muster create x --image hpc @ 2026) cur=2026 ;;
	esac
	cword=$((${#words[@]} - 1))
}
muster() {
	case "$*" in
	*" hpc@2026") printf 'hpc@2026-06-03\nhpc@2026-11-20\n:4\n' ;;
	esac
}
COMP_WORDBREAKS=$' \t\n"\'@><=;|&(:' COMP_TYPE=63 COLUMNS=80
compopt() { :; }
__start_muster
printf '%s\n' "${COMPREPLY[@]}"
`)
	out, err := exec.Command(bash, "--norc", "-c", script.String()).CombinedOutput()
	if want := "2026-06-03\n2026-11-20\n"; err != nil || string(out) != want {
		t.Errorf("completed %q, want %q: %v", out, want, err)
	}
}
