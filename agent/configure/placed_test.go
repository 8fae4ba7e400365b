package configure

import (
	"path"
	"strings"
	"testing"

	"github.com/muster-hpc/muster/agent/units"
)

// A saved root leaves out what this package writes: each new file must be on the list, or be
// one of those that a saved root is cleaned of.
func TestPlacedIsWhatIsWritten(t *testing.T) {
	t.Parallel()
	c, _, root := node(t)
	before := tree(t, root)
	cfg := config()
	cfg.ProxyURL, cfg.Time = "http://10.90.0.1:3128", []string{"10.90.0.1"}
	r := newReport(t)
	if err := c.Apply(t.Context(), cfg, r); err != nil {
		t.Fatal(err)
	}
	eventually(t, "accounting", func() bool { return r.has("accounting") })
	cleaned := []string{ // accounts are taken out of them, homes are left out, and what is in memory is on no disk
		"etc/passwd", "etc/group", "etc/shadow", "etc/gshadow", "home", "run", "tmp", "var/log", "var/lib/mysql",
	}
	placed := append(units.Placed(nil), cleaned...)
	for name, text := range tree(t, root) {
		if before[name] == text || strings.HasSuffix(name, "/") {
			continue
		}
		found := false
		for at := strings.TrimPrefix(name, "/"); at != "." && !found; at = path.Dir(at) {
			for _, p := range placed {
				if ok, _ := path.Match(p, at); ok {
					found = true
				}
			}
		}
		if !found {
			t.Errorf("%s is written and not in units.Placed: a saved root would have it", name)
		}
	}
}
