package cli

import (
	"testing"
	"time"
)

// The zone of a line is one: the server's times are written in that of the others.
func TestLocalTimes(t *testing.T) {
	t.Parallel()
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"the cluster ends in 1m, at 03:34:48 UTC":                "the cluster ends in 1m, at 05:34:48 CEST",
		"starts at 2026-11-25 23:34:48 UTC, promised":            "starts at 2026-11-26 00:34:48 CET, promised",
		"kept until 2026-11-25T03:34:48Z":                        "kept until 2026-11-25 04:34:48 CET",
		"from 2026-11-25T03:34:48Z to 2026-11-25T05:34:48Z":      "from 2026-11-25 04:34:48 CET to 2026-11-25 06:34:48 CET",
		"52:54:00:12:34:56 is no time, and 10:10:10 has no zone": "52:54:00:12:34:56 is no time, and 10:10:10 has no zone",
		"at 99:99:99 UTC": "at 99:99:99 UTC",
	} {
		if got := localTimes(text, zone, now); got != want {
			t.Errorf("%q\nis   %q\nwant %q", text, got, want)
		}
		if got := localTimes(text, time.UTC, now); got != text {
			t.Errorf("in UTC %q", got)
		}
	}
}
