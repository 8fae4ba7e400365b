package main

import (
	"os"
	"strings"
	"testing"

	"github.com/muster-hpc/muster/cli"
)

// What docs/cli.md says of the commands that only this program has is what they
// say of themselves, and it leaves no command out. MUSTER_UPDATE=1 writes it
// anew.
func TestReferenceIsTrue(t *testing.T) {
	t.Parallel()
	const file, begin, end = "../../docs/cli.md", "<!-- reference of the host -->\n", "<!-- end of the host's reference -->\n"
	was, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(was), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatal("docs/cli.md has no marks of the reference")
	}
	env := environment()
	root := cli.New(env)
	text := ""
	for _, c := range env.Extra {
		text += cli.Reference(c)
	}
	now := before + begin + text + end + after
	for line := range strings.Lines(cli.Reference(root)) {
		if strings.HasPrefix(line, "### ") && !strings.Contains(now, line) {
			t.Errorf("docs/cli.md lacks %q: MUSTER_UPDATE=1 go test ./cli", strings.TrimSpace(line))
		}
	}
	switch {
	case os.Getenv("MUSTER_UPDATE") != "":
		if err := os.WriteFile(file, []byte(now), 0o644); err != nil {
			t.Fatal(err)
		}
	case now != string(was):
		t.Error("docs/cli.md is not what the commands are now: MUSTER_UPDATE=1 go test ./cmd/muster -run Reference")
	}
}
