package suggest

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestOf(t *testing.T) {
	t.Parallel()
	known := []string{"cores", "memory", "nic_speed", "image", "packages", "namespace_masks", "ab"}
	for word, want := range map[string]string{
		"cors": "cores", "coers": "cores", "CORES": "cores", "memroy": "memory", "imagge": "image", "mage": "image",
		"NIC_SPEED": "nic_speed", "nicspeed": "nic_speed", "pacakges": "packages", "a": "ab", "ba": "ab",
		"zebra": "", "": "", "x": "", "entirely-else": "", strings.Repeat("cores", 100): "",
	} {
		if got := Of(word, known); got != want {
			t.Errorf("%q is near %q, want %q", word, got, want)
		}
	}
	if got := Of("x", []string{"y", ""}); got != "" {
		t.Errorf("x is near %q, with which it shares nothing", got)
	}
	if got := Of("cfd2", []string{"cfd3", "cfd1", "cfd4"}); got != "cfd1" {
		t.Errorf("of three equally near it is %q", got)
	}
}

func TestSlip(t *testing.T) {
	t.Parallel()
	known := []string{"bob", "alice", "christoph"}
	for word, want := range map[string]string{
		"bbo": "bob", "bab": "bob", "alise": "alice", "alcie": "alice", "chritsohp": "christoph",
		"ada": "", "eliza": "", "alan": "", "christian": "", "": "",
	} {
		if got := Slip(word, known); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
	if got := Of("christian", known); got != "christoph" {
		t.Errorf("Of allows three in nine: %q", got)
	}
}

// What is found is of the list and within the slips allowed, a word finds
// itself, and the order of the list does not matter.
func TestOfKeepsItsPromises(t *testing.T) {
	t.Parallel()
	word := rapid.StringMatching(`[abAB_-]{1,7}`)
	rapid.Check(t, func(t *rapid.T) {
		w, list := word.Draw(t, "word"), rapid.SliceOfN(word, 0, 6).Draw(t, "list")
		got := Of(w, list)
		if got != "" && (!slices.Contains(list, got) || distance(plain(w), plain(got)) > max(1, len(w)/3)) {
			t.Fatalf("Of(%q, %q) = %q", w, list, got)
		}
		other := slices.Clone(list)
		slices.Reverse(other)
		if turned := Of(w, other); turned != got {
			t.Fatalf("Of(%q, %q) = %q, and %q of the list turned round", w, list, got, turned)
		}
		if self := Of(w, append(list, w)); plain(self) != plain(w) {
			t.Fatalf("Of(%q) finds %q rather than the word itself", w, self)
		}
	})
}

func TestDistance(t *testing.T) {
	t.Parallel()
	word := rapid.StringMatching(`[abc]{0,6}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := word.Draw(t, "a"), word.Draw(t, "b")
		d := distance(a, b)
		if d != distance(b, a) || (d == 0) != (a == b) || d > max(len(a), len(b)) {
			t.Fatalf("distance(%q, %q) = %d", a, b, d)
		}
	})
}

func FuzzOf(f *testing.F) {
	f.Add("cors", "cores")
	f.Add("\xff\u0130", "i")
	f.Fuzz(func(t *testing.T, word, name string) {
		if got := Of(word, []string{name}); got != "" && got != name {
			t.Errorf("Of(%q, %q) = %q", word, name, got)
		}
	})
}
