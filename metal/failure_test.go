package metal

import (
	"errors"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal/power"
)

// A boot that failed keeps everything that was known of why: each problem, the cause, and
// what to do.
func TestFailureKeepsItsReasons(t *testing.T) {
	t.Parallel()
	wrong := power.Target{Machine: "a", Address: muster.PowerAddress{Kind: muster.PowerRedfish, Address: "10.9.0.50", User: "admin", Quirk: "dell"}}.Check()
	f := failure("power", wrong)
	for _, part := range []string{"power.certificate_sha256", "power.quirk", "dell", "power_password"} {
		if !strings.Contains(f.Text, part) {
			t.Errorf("no %q in %q", part, f.Text)
		}
	}
	if f.Hint == "" || f.Code != string(muster.EInvalid) {
		t.Errorf("%+v", f)
	}
	f = failure("power", muster.Errorf(muster.EUnavailable, "its controller cannot be reached").WithHint("look at it").Wrap(errors.New("tls: handshake failure")))
	if !strings.Contains(f.Text, "tls: handshake failure") || f.Hint != "look at it" {
		t.Errorf("%+v", f)
	}
}
