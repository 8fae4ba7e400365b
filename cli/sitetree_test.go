package cli_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/daemon/controltest"
)

// What is exported is what was described, with machines that are to come.
func TestTopologyExportLosesNothing(t *testing.T) {
	t.Parallel()
	w := at(t, controltest.Start(t, controltest.Options{Machines: 3}))
	file := filepath.Join(t.TempDir(), "site.yaml")
	text := `stands:
  - name: core
    kind: spine
  - name: leaf1
    kind: leaf
    in: core
    uplink: 2 x 40Gb/s
    machines: "fake-[01-12]"
  - name: leaf2
    kind: leaf
    in: core
    delay: 500us
    machines: "later-[1-4]"
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	w.with("SUDO_USER", "").run("topology", "import", file).want(t, 0, `not machines of this site: fake-\[04-12\],later-\[1-4\]`)
	if r := w.run("topology", "export").want(t, 0); r.out != text {
		t.Errorf("\n%s\nwant\n%s", r.out, text)
	}
	w.run("topology", "show", "-o", "json").want(t, 0, `"unknown_machines": "fake-\[04-12\]"`, `"unknown_machines": "later-\[1-4\]"`)
	w.refused(2, muster.ReasonRequired, "topology", "import", "/dev/null")
}
