package configure

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// What a service did not read, because the configuration that changed its files failed or was overtaken, it
// reads with the next one, which changes none of them; and once.
func TestUnreadFilesAreReadLater(t *testing.T) {
	t.Parallel()
	for name, command := range map[string]string{"slurmctld": "scontrol reconfigure", "ssh": "systemctl reload --no-block ssh.service"} {
		c, run, _ := node(t)
		r := newReport(t)
		if err := c.Apply(t.Context(), config(), r); err != nil {
			t.Fatal(err)
		}
		eventually(t, "accounting", func() bool { return r.has("accounting") })
		newer := config()
		newer.Generation = 2
		newer.Slurm.Files[0].Content += "# newer\n"
		newer.SSH.UserCA = "ssh-ed25519 AAAA another"
		run.answer = func(line string) (string, error) {
			switch {
			case strings.HasPrefix(line, "mariadb"):
				return "2013\n", nil
			case line == command:
				return "", errors.New("it does not listen")
			}
			return "", nil
		}
		if err := c.Apply(t.Context(), copied(newer), newReport(t)); err == nil {
			t.Fatalf("%s: %q failed, and nobody hears of it", name, command)
		}
		run.answer = func(line string) (string, error) {
			if strings.HasPrefix(line, "mariadb") {
				return "2013\n", nil
			}
			return "", nil
		}
		for i, want := range []bool{true, false} {
			ran := len(run.lines())
			newer.Generation++
			if err := c.Apply(t.Context(), copied(newer), newReport(t)); err != nil {
				t.Fatal(name, err)
			}
			if got := slices.Contains(run.lines()[ran:], command); got != want {
				t.Errorf("%s, configuration %d after it: %q %v, not %v", name, i+1, command, got, want)
			}
		}
	}
}
