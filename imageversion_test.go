package muster

import (
	"strings"
	"testing"
	"time"
)

func TestParseImageVersion(t *testing.T) {
	t.Parallel()
	day := func(text string) time.Time {
		at, err := time.Parse(time.DateOnly, text)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	hex := strings.Repeat("ab", 32)
	for ref, want := range map[string]ImageVersion{
		"hpc@2026-11-20":      {Name: "hpc", Before: day("2026-11-21")},
		"hpc@2026-11":         {Name: "hpc", Before: day("2026-12-01")},
		"hpc@2026-12":         {Name: "hpc", Before: day("2027-01-01")},
		"hpc@2028-02-29":      {Name: "hpc", Before: day("2028-03-01")},
		"hpc-12@ABCDEF":       {Name: "hpc-12", Content: "abcdef"},
		"hpc@sha256:" + hex:   {Name: "hpc", Content: hex},
		"hpc@202611":          {Name: "hpc", Content: "202611"},
		"hpc@sha256:abcdef12": {Name: "hpc", Content: "abcdef12"},
	} {
		if got, ok, err := ParseImageVersion(ref); err != nil || !ok || got != want {
			t.Errorf("%s: %+v, %v, %v", ref, got, ok, err)
		}
	}
	for _, ref := range []string{"hpc", "", "sha256:" + hex} {
		if _, ok, err := ParseImageVersion(ref); ok || err != nil {
			t.Errorf("%q: %v, %v", ref, ok, err)
		}
	}
	for _, ref := range []string{
		"hpc@", "@2026-11-20", "hpc@2026-11-31", "hpc@2026-13", "hpc@20.11.2026", "hpc@2026-1-2", "hpc@abc", "hpc@2026-11-20T10:00", "hpc@yesterday",
		"hpc@2026-11-20@2026", "hpc@" + hex + "0", "hpc@2026-00",
	} {
		_, ok, err := ParseImageVersion(ref)
		if e, is := err.(*Error); !ok || !is || e.Code != EInvalid || e.Reason != ReasonBadValue || !strings.Contains(e.Hint, "2026-11-20") {
			t.Errorf("%q: %v, %v", ref, ok, err)
		}
	}
}

// What is read is either an error or names a content in one way.
func FuzzParseImageVersion(f *testing.F) {
	for _, seed := range []string{"hpc@2026-11-20", "hpc@2026-11", "hpc@abcdef", "hpc@sha256:abcdef", "@", "a@9999-12-31", "a@0000-01"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, ref string) {
		v, ok, err := ParseImageVersion(ref)
		switch {
		case ok != strings.Contains(ref, "@"):
			t.Errorf("%q: ok is %v", ref, ok)
		case err != nil && v != ImageVersion{}:
			t.Errorf("%q: %+v and %v", ref, v, err)
		case ok && err == nil && (v.Name == "" || v.Before.IsZero() == (v.Content == "")):
			t.Errorf("%q: %+v", ref, v)
		}
	})
}
