package client

import (
	"strings"
	"testing"

	"github.com/muster-hpc/muster/wire"
)

// Whatever a server sends as events, the reader ends with an error or at the
// end, and never gives an event that was not there.
func FuzzReadEvents(f *testing.F) {
	f.Add("id: 1\ndata: {\"seq\":1,\"kind\":\"cluster\"}\n\n: alive\n\nevent: end\ndata: {}\n\n")
	f.Add("data: {\ndata: }\n\n")
	f.Add("data\n\n\n\nid\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		n := 0
		_ = readEvents(strings.NewReader(text), func(wire.Event) error { n++; return nil })
		if n > strings.Count(text, "data") {
			t.Fatalf("%d events of %q", n, text)
		}
	})
}

// What is taken as an address is the same when it is read again.
func FuzzParseAddress(f *testing.F) {
	for _, s := range []string{"", "unix:/a", "https://h", "https://[::1]:1", "http://x", "unix:a/../b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, err := ParseAddress(s)
		if err != nil {
			return
		}
		again, err := ParseAddress(a.String())
		if err != nil || again != a {
			t.Fatalf("%q: %v, then %v, %v", s, a, again, err)
		}
	})
}
