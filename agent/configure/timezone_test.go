package configure

import (
	"os"
	"path/filepath"
	"testing"
)

func TestTimeZone(t *testing.T) {
	t.Parallel()
	c, _, root := node(t)
	for _, dir := range []string{"/usr/share/zoneinfo/Europe/Berlin", "/etc/secret"} {
		at := filepath.Join(root, dir)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte("TZif"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cfg := config()
	link := func() string { to, _ := os.Readlink(filepath.Join(root, "/etc/localtime")); return to }
	for _, zone := range []string{"", "Nowhere/Else", "../../../etc/secret", "/etc/secret"} {
		cfg.TimeZone = zone
		if err := c.timezone(cfg); err != nil || link() != "" {
			t.Errorf("%q: %s, %v", zone, link(), err)
		}
	}
	cfg.TimeZone = "Europe/Berlin"
	for range 2 {
		if err := c.timezone(cfg); err != nil || link() != "/usr/share/zoneinfo/Europe/Berlin" {
			t.Errorf("%s, %v", link(), err)
		}
	}
}
