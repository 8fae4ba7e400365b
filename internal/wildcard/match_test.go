package wildcard_test

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/muster-hpc/muster/internal/wildcard"
)

func TestMatch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"", "", true}, {"", "a", false}, {"*", "", true}, {"*", "a/b", true}, {"?", "", false}, {"?", "a", true},
		{"EPYC*", "EPYC 7543", true}, {"EPYC*", "AMD EPYC", false}, {"*EPYC*", "AMD EPYC 7543", true},
		{"a*b*c", "aXbYbZc", true}, {"a*b*c", "aXbYbZ", false}, {"[0-9]x", "7x", true}, {"[0-9]x", "ax", false},
		{"[ab-d]", "c", true}, {"[", "[", true}, {"a[", "ab", false}, {"**a**", "bab", true},
	} {
		if got := wildcard.Match(c.pattern, c.text); got != c.want {
			t.Errorf("%q and %q: %v", c.pattern, c.text, got)
		}
	}
	// One that a slow way of matching would not come to an end with.
	if wildcard.Match(strings.Repeat("a*", 40)+"b", strings.Repeat("a", 5000)) {
		t.Error("there is no b")
	}
}

// A pattern means what a regular expression of the same meaning does.
func TestMatchProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.StringMatching(`([ab]|\*|\?|\[a-b\]|\[b\]){0,8}`).Draw(t, "pattern")
		text := rapid.StringMatching(`[abc]{0,10}`).Draw(t, "text")
		want := regexp.MustCompile("^" + strings.NewReplacer("*", ".*", "?", ".").Replace(pattern) + "$").MatchString(text)
		if got := wildcard.Match(pattern, text); got != want {
			t.Fatalf("%q and %q: %v", pattern, text, got)
		}
	})
}

func FuzzMatch(f *testing.F) {
	f.Add("a*[b-", "abc")
	f.Fuzz(func(_ *testing.T, pattern, text string) { wildcard.Match(pattern, text) })
}
