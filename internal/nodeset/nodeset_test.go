package nodeset

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func must(t testing.TB, text string) Set {
	t.Helper()
	s, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestParse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, folded, names string }{
		{"", "", ""},
		{" , ", "", ""},
		{"head", "head", "head"},
		{"n01", "n01", "n01"},
		{"n[01-03,20]", "n[01-03,20]", "n01 n02 n03 n20"},
		{"n1,n2,n3", "n[1-3]", "n1 n2 n3"},
		{"n3 n1 n2", "n[1-3]", "n1 n2 n3"},
		{"n[8-11]", "n[8-11]", "n8 n9 n10 n11"},
		{"n[08-11]", "n[08-11]", "n08 n09 n10 n11"},
		{"n[98-101]", "n[98-101]", "n98 n99 n100 n101"},
		{"n[098-101]", "n[098-101]", "n098 n099 n100 n101"},
		{"n[09-100]", "n[09-100]", ""},
		{"n[1,01,001]", "n[1,01,001]", "n1 n01 n001"},
		{"n[1-9/2]", "n[1,3,5,7,9]", "n1 n3 n5 n7 n9"},
		{"n[8-12/2]", "n[8,10,12]", "n8 n10 n12"},
		{"n1[0-2]", "n[10-12]", "n10 n11 n12"},
		{"n0[8-11]", "n[08-09,010-011]", "n08 n09 n010 n011"},
		{"r[1-2]n[1-2]", "r1n[1-2],r2n[1-2]", "r1n1 r1n2 r2n1 r2n2"},
		{"n[1-2]-ib", "n[1-2]-ib", "n1-ib n2-ib"},
		{"n[1-2]-ib0", "n1-ib0,n2-ib0", "n1-ib0 n2-ib0"},
		{"n[1-2][3-4]", "n[13-14,23-24]", "n13 n14 n23 n24"},
		{"[1-2]", "[1-2]", "1 2"},
		{"n[1-2],x,n[2-4],y5", "n[1-4],x,y5", "n1 n2 n3 n4 x y5"},
		{"n[3,1,2,2]", "n[1-3]", "n1 n2 n3"},
		{"a.example.org,b.example.org", "a.example.org,b.example.org", "a.example.org b.example.org"},
		{"x[000000000000000001-000000000000000002]", "x[000000000000000001-000000000000000002]", ""},
		{"x9999999999999999999999[1-2]", "x9999999999999999999999[1-2]", ""},
	} {
		s := must(t, c.text)
		if c.text == "x9999999999999999999999[1-2]" {
			if again := must(t, s.String()); !again.Equal(s) || s.Count() != 2 || !s.Contains("x99999999999999999999991") {
				t.Errorf("%s: %s", c.text, s)
			}
			continue
		}
		if got := s.String(); got != c.folded {
			t.Errorf("%q folds to %q, want %q", c.text, got, c.folded)
		}
		names, err := s.Expand()
		if err != nil {
			t.Fatal(err)
		}
		if c.names != "" && strings.Join(names, " ") != c.names {
			t.Errorf("%q is %v, want %s", c.text, names, c.names)
		}
		if s.Count() != len(names) {
			t.Errorf("%q counts %d of %d", c.text, s.Count(), len(names))
		}
	}
}

func TestParseErrors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"n[1-3":                              "not closed",
		"n1]":                                "not opened",
		"n[]":                                "not a range",
		"n[1-]":                              "not a range",
		"n[a-b]":                             "not a range",
		"n[3-1]":                             "backwards",
		"n[01-5]":                            "padded differently",
		"n[1-05]":                            "padded differently",
		"n[1-9/0]":                           "not a step",
		"n/1":                                "cannot hold '/'",
		"n 1;2":                              "cannot hold ';'",
		"n[1-9999999999999999999]":           "digits",
		"n[1-99999999]m[1-2]":                "multiply",
		"n[1-999999999/2]":                   "steps",
		"n[1-300][1-300][1-300]":             "multiply",
		"a" + strings.Repeat("[1]", 9):       "brackets",
		strings.Repeat("a", 254):             "characters",
		strings.Repeat("a", maxText+1):       "too long",
		"n[1-90000]-x[1,3,5]":                "multiply",
		"ünï":                                "cannot hold",
		strings.Repeat("m[1-50000]x1,", 100): "multiply",
	} {
		_, err := Parse(text)
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
}

// Hostile sizes cost nothing until somebody asks for the names.
func TestHuge(t *testing.T) { // not parallel: it counts allocations
	start := time.Now()
	s := must(t, "n[1-999999999],m[1-999999999999999999]")
	if s.Count() != 999999999+999999999999999999 {
		t.Errorf("counts %d", s.Count())
	}
	if _, err := s.Expand(); err == nil {
		t.Error("expanded")
	}
	o := must(t, "n[500-2000000000]")
	if got := s.Difference(o).Intersect(must(t, "n[1-99999]")).String(); got != "n[1-499]" {
		t.Errorf("difference is %s", got)
	}
	if !s.Contains("n123456789") || s.Contains("n0123456789") || s.Contains("n1000000000") {
		t.Error("contains")
	}
	many := strings.Repeat("n[1-999999999999999999],m1x[1-999999999999999999],", 100)
	if got := must(t, many).String(); got != "m1x[1-999999999999999999],n[1-999999999999999999]" {
		t.Error(got)
	}
	if allocs := testing.AllocsPerRun(100, func() { _, _ = Parse("n[1-999999999]") }); allocs > 40 {
		t.Errorf("%v allocations", allocs)
	}
	if took := time.Since(start); took > time.Minute { // who counted the names would not end
		t.Errorf("took %s", took)
	}
}

// anyName draws names that often have neighbours.
func anyName() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.StringMatching(`[an](0{0,2})[0-9]{1,2}`),
		rapid.StringMatching(`r[12]n[0-9]{1,3}(-ib)?`),
		rapid.StringMatching(`[a-zA-Z0-9._-]{1,6}`),
		rapid.StringMatching(`x[0-9]{17,22}`),
	)
}

func unique(names []string) []string {
	out := slices.Clone(names)
	slices.Sort(out)
	return slices.Compact(out)
}

func sorted(t *rapid.T, s Set) []string {
	names, err := s.Expand()
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return names
}

// A set is exactly the names it was made of, and its folded form says the same.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOf(anyName()).Draw(t, "names")
		s, err := Of(names...)
		if err != nil {
			t.Fatal(err)
		}
		if got := sorted(t, s); !slices.Equal(got, unique(names)) {
			t.Fatalf("%v became %v", names, got)
		}
		if Fold(names) != s.String() {
			t.Fatalf("%s and %s", Fold(names), s)
		}
		again, err := Parse(s.String())
		if err != nil || !again.Equal(s) {
			t.Fatalf("%s read back as %s (%v)", s, again, err)
		}
		for _, n := range names {
			if !s.Contains(n) {
				t.Fatalf("%s lacks %s", s, n)
			}
		}
		if s.Count() != len(unique(names)) {
			t.Fatalf("%s counts %d", s, s.Count())
		}
	})
}

// The operations do what they do on lists of names.
func TestAlgebra(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.SliceOf(anyName()).Draw(t, "x")
		y := rapid.SliceOf(anyName()).Draw(t, "y")
		a, _ := Of(x...)
		b, _ := Of(y...)
		before := a.String()
		var both, only []string
		for _, n := range unique(x) {
			if slices.Contains(y, n) {
				both = append(both, n)
			} else {
				only = append(only, n)
			}
		}
		if got := sorted(t, a.Intersect(b)); !slices.Equal(got, both) {
			t.Fatalf("intersection %v, want %v", got, both)
		}
		if got := sorted(t, a.Difference(b)); !slices.Equal(got, only) {
			t.Fatalf("difference %v, want %v", got, only)
		}
		if got := sorted(t, a.Union(b)); !slices.Equal(got, unique(append(slices.Clone(x), y...))) {
			t.Fatalf("union %v", got)
		}
		if !a.Union(b).Equal(b.Union(a)) || !a.Intersect(b).Union(a.Difference(b)).Equal(a) {
			t.Fatal("the laws of sets do not hold")
		}
		if a.String() != before {
			t.Fatal("an operation changed its receiver")
		}
	})
}

// Ranges mean the names that they write out to.
func TestRanges(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		low := rapid.IntRange(0, 1200).Draw(t, "low")
		high := low + rapid.IntRange(0, 300).Draw(t, "length")
		width := rapid.IntRange(1, 5).Draw(t, "width")
		var names []string
		for v := low; v <= high; v++ {
			names = append(names, "n"+pad(v, width))
		}
		s := must2(t, "n["+pad(low, width)+"-"+pad(high, width)+"]")
		got, err := s.Expand()
		if err != nil || !slices.Equal(got, names) {
			t.Fatalf("%s: %v, want %v", s, got, names)
		}
	})
}

func pad(v, width int) string {
	d := span{digits: 20}.number(uint64(v))
	d = strings.TrimLeft(d, "0")
	if len(d) < width {
		d = strings.Repeat("0", width-len(d)) + d
	}
	return d
}

func must2(t *rapid.T, text string) Set {
	s, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"n[01-16,20]", "r[1-2]n[1-4]-ib", "a,b c", "n[1-9/2]", "n[1-999999999]", "x1[0-2]3", "[", "]", "n[1-2][3-4]5"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text)
		if err != nil {
			return
		}
		again, err := Parse(s.String())
		if err != nil || !again.Equal(s) {
			t.Fatalf("%q -> %q -> %q (%v)", text, s, again, err)
		}
		if s.Count() <= 1000 {
			names, err := s.Expand()
			if err != nil || len(names) != s.Count() {
				t.Fatalf("%q: %d of %d, %v", text, len(names), s.Count(), err)
			}
			if o, err := Of(names...); err != nil || !o.Equal(s) {
				t.Fatalf("%q: %s, %v", text, o, err)
			}
		}
		if !s.Difference(s).Empty() || !s.Union(s).Equal(s) || !s.Intersect(s).Equal(s) {
			t.Fatalf("%q: the laws of sets do not hold", text)
		}
	})
}

func BenchmarkFold4000(b *testing.B) {
	names, _ := Expand("n[0001-4000]")
	for b.Loop() {
		_ = Fold(names)
	}
}
