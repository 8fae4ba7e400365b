package admit_test

import (
	"os"
	"strings"
	"testing"

	"github.com/muster-hpc/muster/control/admit"
)

// Every reason is described.
func TestDocumentation(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/users/admission.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range admit.Reasons() {
		if !strings.Contains(string(text), "`"+r+"`") {
			t.Errorf("reason %s is not described", r)
		}
	}
}
