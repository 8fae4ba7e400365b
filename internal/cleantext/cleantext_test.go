package cleantext

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestWhatPeopleWriteStays(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"", "n01: ready", "Zürich, Ångström, naïve café", "e\u0301", "привет", "שלום", "مرحبا بالعالم", "日本語テスト", "हिन्दी", "한국어", "😀 ☎️ ✔", "a\u00a0b", "µs ½ → ∞",
	} {
		if got := Line(s); got != s {
			t.Errorf("%q becomes %q", s, got)
		}
	}
}

func TestWhatLiesDoesNot(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		"\x1b[2Jgone":                      "\ufffd[2Jgone",
		"a\nb\tc\r\nd":                     "a b c  d",
		"cost \u202e0001\u202c":            "cost \ufffd0001\ufffd",
		"\u2066x\u2069":                    "\ufffdx\ufffd",
		"ali\u200bce":                      "ali\ufffdce",
		"ali\u00adce":                      "ali\ufffdce",
		"\ufeffbob":                        "\ufffdbob",
		"tag\U000e0041\U000e0042":          "tag\ufffd\ufffd",
		"\u3164\u115f":                     "\ufffd\ufffd",
		"sel\U000e0100":                    "sel\ufffd",
		"c1 \u009b31m":                     "c1 \ufffd31m",
		"line\u2028para\u2029":             "line para ",
		"bad \xff\xfe":                     "bad \ufffd\ufffd",
		"private \ue000 \U0010ffff":        "private \ufffd \ufffd",
		"\u2800blank":                      "\ufffdblank",
		"back\x08space\x7f":                "back\ufffdspace\ufffd",
		"\x1b]8;;http://evil\x07x\x1b]8;;": "\ufffd]8;;http://evil\ufffdx\ufffd]8;;",
	} {
		if got := Line(s); got != want {
			t.Errorf("%q becomes %q, want %q", s, got, want)
		}
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		s    string
		most int
		want string
	}{{"abc", 3, "abc"}, {"abc", 2, "ab"}, {"aé", 2, "a"}, {"日本", 4, "日"}, {"日", 1, ""}, {"x", 0, ""}} {
		if got := Cut(c.s, c.most); got != c.want {
			t.Errorf("%q cut to %d is %q, want %q", c.s, c.most, got, c.want)
		}
	}
}

func FuzzLine(f *testing.F) {
	for _, s := range []string{"plain", "\u202e", "\xff", "日本\n", "\U000e0001"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := Line(s)
		if !utf8.ValidString(got) {
			t.Errorf("%q becomes %q, which is no UTF-8", s, got)
		}
		for _, r := range got {
			if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029' || r >= 0xe0000 && r <= 0xe0fff {
				t.Errorf("%q becomes %q, which holds %U", s, got, r)
			}
		}
		if Line(got) != got {
			t.Errorf("%q is not clean after it was cleaned", got)
		}
		if utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return r > '~' || r < ' ' }) && got != s {
			t.Errorf("%q becomes %q", s, got)
		}
	})
}
