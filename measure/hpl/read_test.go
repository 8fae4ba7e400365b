package hpl_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/errortest"
	"github.com/muster-hpc/muster/measure/hpl"
)

// real is what xhpl printed on two cores of a virtual machine, by Open MPI 5.
func real(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestRead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name                       string
		ranks, passed, failed, out int
	}{{"passed", 2, 1, 0, 0}, {"several", 2, 3, 0, 0}, {"failed", 1, 0, 1, 0}, {"skipped", 1, 0, 0, 1}} {
		got, err := hpl.Read(bytes.NewReader(real(t, c.name)), hpl.DefaultLimits())
		if err != nil {
			t.Fatalf("%s: %+v", c.name, err)
		}
		if len(got.Ranks) != c.ranks || len(got.Solutions) != c.passed || len(got.Failed) != c.failed || got.Skipped != c.out {
			t.Errorf("%s: %+v", c.name, got)
		}
		if got.MPI != "Open MPI v5.0.7" || got.Source == "" || !strings.HasSuffix(got.Ranks[0].BLAS, "/libopenblasp-r0.3.29.so") || got.Ranks[0].CPUs == "" {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
	got, err := hpl.Read(bytes.NewReader(real(t, "passed")), hpl.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	s := got.Solutions[0]
	if s.N != 1536 || s.NB != 192 || s.P != 1 || s.Q != 2 || s.Variant != "WR11C2R4" || s.Rate < 1e9 || s.Residual <= 0 {
		t.Errorf("%+v", s)
	}
}

// What was cut off anywhere is refused, and what libraries print between is not.
func TestReadCutOff(t *testing.T) {
	t.Parallel()
	text := real(t, "several")
	end := bytes.Index(text, []byte("End of Tests.")) + len("End of Tests.\n")
	for n := range end {
		if _, err := hpl.Read(bytes.NewReader(text[:n]), hpl.DefaultLimits()); muster.CodeOf(err) != muster.EInvalid {
			t.Fatalf("the first %d bytes: got %v", n, err)
		}
	}
	noisy := bytes.ReplaceAll(text, []byte("\n"), []byte("\nlibfabric: something\n"))
	if out, err := hpl.Read(bytes.NewReader(noisy), hpl.DefaultLimits()); err != nil || len(out.Solutions) != 3 {
		t.Errorf("%+v, %v", out, err)
	}
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	good := string(real(t, "passed"))
	var time, check string
	for line := range strings.Lines(good) {
		switch {
		case strings.HasPrefix(line, "WR"):
			time = line
		case strings.HasPrefix(line, "||Ax-b"):
			check = line
		}
	}
	swap := func(old, with string) string {
		t.Helper()
		if !strings.Contains(good, old) {
			t.Fatalf("there is no %q", old)
		}
		return strings.Replace(good, old, with, 1)
	}
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "output bad-value line 0"},
		{"another rate", swap("e+01\n", "e+03\n"), "output bad-value line 50"},
		{"a rate of zero", swap(time, "WR11C2R4        1536   192     1     2               0.07              0.000e+00\n"), "output bad-value line 50"},
		{"a size of millions", swap("        1536   192", "  1000000000   192"), "output bad-value line 50"},
		{"a garbled line", swap("WR11C2R4", "WR11C2"), "output bad-value line 50"},
		{"a check twice", swap(check, check+check), "output bad-value line 53"},
		{"no check", swap(check, ""), "output bad-value line 61"},
		{"a time twice", swap(time, time+time), "output bad-value line 51"},
		{"a residual that passes and does not", swap(" ...... PASSED", "9999 ...... PASSED"), ""},
		{"a pass that is not a number", swap(check[strings.Index(check, "N)=")+3:], " nan ...... PASSED\n"), "output bad-value line 52"},
		{"a failure that is counted as passed", swap("PASSED", "FAILED"), "output bad-value line 62"},
		{"a rank less", swap(`"ranks":2`, `"ranks":3`), "output bad-value line 62"},
		{"a rank more", swap(`"ranks":2`, `"ranks":1`), "output bad-value line 3"},
		{"another version", swap(`"v":1`, `"v":2`), "output bad-value line 1"},
		{"a broken line of ours", swap(`"rank":0`, `"rank":"x"`), "output bad-value line 2"},
		{"two launches", good + good, "output bad-value line 63"},
		{"more after the end", good + time, "output bad-value line 63"},
	} {
		_, err := hpl.Read(strings.NewReader(c.text), hpl.DefaultLimits())
		var e *muster.Error
		if c.want == "" {
			continue // the same number with more digits: still below 16
		}
		if !errors.As(err, &e) || e.Code != muster.EInvalid || len(e.Problems) == 0 || errortest.Problems(e.Problems)[0] != c.want {
			t.Errorf("%s: got %+v, %q, want %q", c.name, err, errortest.Problems(errortest.Listed(err)), c.want)
		}
	}
	lim := hpl.DefaultLimits()
	for name, change := range map[string]func(*hpl.Limits){
		"bytes": func(l *hpl.Limits) { l.Bytes = 100 }, "line": func(l *hpl.Limits) { l.LineBytes = 40 },
		"ranks": func(l *hpl.Limits) { l.Ranks = 1 }, "solutions": func(l *hpl.Limits) { l.Solutions = 0 },
	} {
		l := lim
		change(&l)
		if _, err := hpl.Read(strings.NewReader(good), l); muster.CodeOf(err) != muster.EInvalid {
			t.Errorf("limit of %s: got %v", name, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, name := range []string{"passed", "several", "failed", "skipped"} {
		f.Add(real(f, name))
	}
	lim := hpl.Limits{LineBytes: 4096, Bytes: 1 << 20, Ranks: 64, Solutions: 16}
	f.Fuzz(func(t *testing.T, data []byte) {
		out, err := hpl.Read(bytes.NewReader(data), lim)
		if err != nil {
			if c := muster.CodeOf(err); c != muster.EInvalid {
				t.Fatalf("code %s", c)
			}
			return
		}
		if len(out.Ranks) == 0 || len(out.Ranks) > lim.Ranks || len(out.Solutions)+len(out.Failed) > lim.Solutions {
			t.Fatalf("%d ranks, %d solutions", len(out.Ranks), len(out.Solutions))
		}
		for _, s := range out.Solutions {
			if !(s.Rate > 0) || s.N < 1 || !(s.Residual >= 0 && s.Residual < 16) {
				t.Fatalf("%+v", s)
			}
		}
	})
}
