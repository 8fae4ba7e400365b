package duration_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster/internal/duration"
	"github.com/spf13/pflag"
	"pgregory.net/rapid"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"90s": 90 * time.Second, "1h30m": 90 * time.Minute, "2d": 48 * time.Hour, "1w": 168 * time.Hour, "1w2d12h": 228 * time.Hour,
		"1.5d": 36 * time.Hour, "0": 0, "0d": 0, "-5m": -5 * time.Minute, "250ms": 250 * time.Millisecond, "1d1s": 86401 * time.Second, "1.5h": 90 * time.Minute, ".5h": 30 * time.Minute, "-2d": -48 * time.Hour, "+1h": time.Hour,
	} {
		if got, err := duration.Parse(text); err != nil || got != want {
			t.Errorf("%q: %s %v", text, got, err)
		}
	}
	for _, text := range []string{"", "d", "w", "2", "2d3", "1d1w", "1d1d", "30m1h", "1h1h", "1.5.h", "..h", ".h", "--2d", "-", "1d-5m", "1d+5m", "NaNd", "Infd", "1e3d", "0x2d", "9999999w", "15250w9000000h", " 2d", "2 d", "2d "} {
		if got, err := duration.Parse(text); err == nil {
			t.Errorf("%q is read as %s", text, got)
		}
	}
}

// Whatever is read without weeks and days is what Go reads, and never below zero but for a minus.
// Go also reads what stands in another order or twice, which is a slip.
func TestParseAgreesWithGo(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`-?([0-9]{1,6}(\.[0-9])?(w|d|h|m|s|ms|us|ns)){0,3}`).Draw(t, "text")
		got, err := duration.Parse(text)
		if want, e := time.ParseDuration(text); err == nil && e == nil && got != want {
			t.Fatalf("%q: %s, want %s", text, got, want)
		}
		if err == nil && got < 0 && text[0] != '-' {
			t.Fatalf("%q is %s", text, got)
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		want := time.Duration(rapid.Int64().Draw(t, "d"))
		if got, err := duration.Parse(want.String()); want != math.MinInt64 && !strings.Contains(want.String(), "µ") && (err != nil || got != want) {
			t.Fatalf("%s: %s %v", want, got, err)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"1w2d12h", "1.5h", "-5m", "9999999w", "1h1h", "+.5d"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := duration.Parse(text)
		if err == nil && d < 0 && text[0] != '-' {
			t.Fatalf("%q is %s", text, d)
		}
	})
}

func TestFlag(t *testing.T) {
	t.Parallel()
	var d time.Duration
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	duration.Var(set, &d, "timeout", 2*time.Second, "")
	if f := set.Lookup("timeout"); d != 2*time.Second || f.DefValue != "2s" || f.Value.Type() != "duration" {
		t.Errorf("%s %q", d, f.DefValue)
	}
	if err := set.Parse([]string{"--timeout", "2d"}); err != nil || d != 48*time.Hour {
		t.Error(d, err)
	}
	if err := set.Parse([]string{"--timeout", "soon"}); err == nil || d != 48*time.Hour {
		t.Error(d, err)
	}
}
