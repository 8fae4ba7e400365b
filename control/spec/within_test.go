package spec

import (
	"testing"

	"github.com/muster-hpc/muster/wire"
)

// The data centre has two names in a request, and one afterwards.
func TestWithinDataCentre(t *testing.T) {
	t.Parallel()
	s, problems := Validate(wire.Request{Name: "a", Nodes: 4, Within: "datacentre"}, Defaults{})
	if len(problems) > 0 || s.Within != "site" {
		t.Errorf("%q %v", s.Within, problems)
	}
	for text, hint := range map[string]string{"datacenter": "did you mean site?", "data-centre": "did you mean site?", "leav": "did you mean leaf?", "roon": "did you mean room?"} {
		_, problems := Validate(wire.Request{Name: "a", Nodes: 4, Within: text}, Defaults{})
		if len(problems) != 1 || problems[0].Field != "within" || problems[0].Hint != hint {
			t.Errorf("%q: %+v", text, problems)
		}
	}
}
