package muster

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0", 8 * time.Hour: "28800", 250 * time.Millisecond: "0.25", time.Nanosecond: "0.000000001",
		-1500 * time.Millisecond: "-1.5", math.MinInt64: "-9223372036.854775808",
	} {
		if b, err := json.Marshal(Duration(d)); err != nil || string(b) != want {
			t.Errorf("%v: %s, %v; want %s", d, b, err, want)
		}
	}
	for text, want := range map[string]time.Duration{
		"28800": 8 * time.Hour, "2.88e4": 8 * time.Hour, "0.1": 100 * time.Millisecond, "-0.5": -500 * time.Millisecond, "null": 7,
	} {
		d := Duration(7)
		if err := json.Unmarshal([]byte(text), &d); err != nil || time.Duration(d) != want {
			t.Errorf("%s: %v, %v; want %v", text, d, err, want)
		}
	}
	for _, text := range []string{`"8h"`, `"8"`, `""`, "1e10", "-9223372037", "1e999", "true", "[]", "{}"} {
		d := Duration(7)
		if err := json.Unmarshal([]byte(text), &d); err == nil || d != 7 {
			t.Errorf("%s is read as %v, %v", text, d, err)
		}
	}
}

// What was written is read as it was, as far as a float64 tells it: to the nanosecond for
// half a year, and always for whole seconds.
func TestDurationReturns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := Duration(rapid.Int64Range(-1e16, 1e16).Draw(t, "ns"))
		b, err := json.Marshal(d)
		var got Duration
		if err == nil {
			err = json.Unmarshal(b, &got)
		}
		if err != nil || max(got-d, d-got) > 1 {
			t.Fatalf("%s is read as %d, %v; want %d", b, got, err, d)
		}
	})
}
