package errortest_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/errortest"
)

func TestBrief(t *testing.T) {
	t.Parallel()
	e := muster.Errorf(muster.EInvalid, "it is wrong").Because(muster.ReasonHasProblems)
	for want, err := range map[string]error{
		"":             nil,
		"internal":     errors.New("a defect"),
		"has-problems": fmt.Errorf("asked: %w", e),
		"a[0] required line 3; bad-value": e.Listing([]muster.Problem{
			{Field: "a[0]", Place: "line 3", Reason: muster.ReasonRequired, Message: "it is missing"}, {Message: "it is odd"},
		}),
	} {
		if got := errortest.Brief(err); got != want {
			t.Errorf("%v is %q, want %q", err, got, want)
		}
	}
	if len(errortest.Listed(errors.New("a defect"))) != 0 {
		t.Error("an error without problems lists some")
	}
}
