package cli_test

import (
	"os"
	"strings"
	"testing"

	"github.com/muster-hpc/muster/cli"
)

const reference = "../docs/users/cli.md"

// The reference part of docs/users/cli.md is what the commands say of themselves.
// MUSTER_UPDATE=1 writes it anew. The part about the commands of the server's
// host has a test beside them, in cmd/muster.
func TestReferenceIsTrue(t *testing.T) {
	t.Parallel()
	const begin, end = "<!-- reference -->\n", "<!-- end of reference -->\n"
	was, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(was), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatal("docs/users/cli.md has no marks of the reference")
	}
	now := before + begin + cli.Reference(cli.New(cli.Env{Out: os.Stdout, Err: os.Stderr})) + end + after
	if os.Getenv("MUSTER_UPDATE") != "" {
		if err := os.WriteFile(reference, []byte(now), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if now != string(was) {
		t.Fatal("docs/users/cli.md is not what the commands are now: MUSTER_UPDATE=1 go test ./cli")
	}
}
