package agentserver

import (
	"slices"
	"testing"

	"github.com/muster-hpc/muster/wire"
)

// A report names the checks that changed: what was told of others stays.
func TestMergeChecks(t *testing.T) {
	t.Parallel()
	known := []wire.Check{{Name: "configuration", Text: "a part"}, {Name: "sshd", OK: true}}
	got := mergeChecks(known, []wire.Check{{Name: "sshd", Text: "away"}, {Name: "home", OK: true}})
	want := []wire.Check{{Name: "configuration", Text: "a part"}, {Name: "sshd", Text: "away"}, {Name: "home", OK: true}}
	if !slices.Equal(got, want) || !known[1].OK {
		t.Errorf("%+v, %+v", got, known)
	}
	for range 3 * maxChecks {
		got = mergeChecks(got, []wire.Check{{Name: string(rune('a' + len(got)))}})
	}
	if len(got) > maxChecks {
		t.Errorf("%d checks", len(got))
	}
}
