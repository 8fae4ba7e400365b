package main

import "testing"

func TestDownTo(t *testing.T) {
	t.Parallel()
	for jobs, want := range map[string]string{
		"":                   "",
		"No jobs running.\n": "",
		"  17 reboot.target start waiting\n  18 muster-agent.service stop running\n": "reboot",
		"  17 ssh.service stop waiting\n  9 poweroff.target start waiting\n":         "poweroff",
		"  17 halt.target start waiting\n":                                           "poweroff",
		"  17 muster-agent.service restart running\n":                                "",
		"  17 reboot.target stop waiting\n":                                          "",
		"garbage\n\x00\n":                                                            "",
	} {
		if got := downTo(jobs); got != want {
			t.Errorf("%q: %q instead of %q", jobs, got, want)
		}
	}
}
