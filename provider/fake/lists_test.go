package fake

import (
	"bytes"
	"compress/gzip"
	"io"
	"strings"
	"testing"
)

// TestListsInflateWhatever checks that answers of every form are read as any
// program would, again and again.
func TestListsInflateWhatever(t *testing.T) {
	t.Parallel()
	zip := func(level int, s string) string {
		var b bytes.Buffer
		w, err := gzip.NewWriterLevel(&b, level)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = w.Write([]byte(s))
		_ = w.Close()
		return b.String()
	}
	long := strings.Repeat("host,", 10000)
	var l lists
	for _, parts := range [][]string{
		{zip(0, "a"), zip(6, long), zip(0, "z")}, {zip(0, "b"), zip(6, long), zip(0, "y")},
		{zip(0, "begin") + zip(6, long)}, {zip(9, long)}, {zip(6, long), zip(6, long), zip(6, long), zip(6, "x")},
		{zip(0, "a"), zip(6, "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"), zip(0, "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff")},
	} {
		all := strings.Join(parts, "")
		z, err := gzip.NewReader(strings.NewReader(all))
		if err != nil {
			t.Fatal(err)
		}
		want, _ := io.ReadAll(z)
		for range 2 {
			r, err := l.inflate(strings.NewReader(all))
			if err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d parts: %d bytes, not %d: %v", len(parts), len(got), len(want), err)
			}
		}
		if r, err := l.inflate(strings.NewReader(all[:len(all)-9])); err == nil {
			if _, err = io.ReadAll(r); err == nil {
				t.Error("half an answer is taken for one")
			}
		}
	}
}
