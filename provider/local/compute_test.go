package local

import (
	"testing"

	"pgregory.net/rapid"
)

// What a trial compares with must be right itself.
func TestLeapIsManySteps(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		x, a, c := rapid.Uint64().Draw(t, "x"), rapid.Uint64().Draw(t, "a"), rapid.Uint64().Draw(t, "c")
		n := rapid.IntRange(0, 1000).Draw(t, "n")
		want := x
		for range n {
			want = a*want + c
		}
		if got := leap(x, a, c, n); got != want {
			t.Fatalf("%d, not %d", got, want)
		}
	})
	if err := computeOnce(); err != nil {
		t.Error(err)
	}
	b := make([]byte, 8*1000)
	if err := tryPart(b, 12345); err != nil {
		t.Error(err)
	}
}

func FuzzPrintable(f *testing.F) {
	f.Add([]byte("<30>Nov 21 11:52:52 sshd[29]: Server listening"))
	f.Add([]byte("a\x1b[2J\x07\r\nb\xff\x9b31m"))
	f.Fuzz(func(t *testing.T, b []byte) {
		text := printable(b)
		if text[len(text)-2:] != "\r\n" {
			t.Fatalf("%q does not end", text)
		}
		for _, c := range text {
			if c < ' ' && c != '\t' && c != '\n' && c != '\r' || c >= 0x7f && c < 0xa0 {
				t.Fatalf("%q holds %U", text, c)
			}
		}
	})
}
