package muster_test

import (
	"slices"
	"testing"

	"github.com/muster-hpc/muster"
	"pgregory.net/rapid"
)

// A version is of what runs: whatever is in it makes another one, and nothing else does.
func TestProgramVersion(t *testing.T) {
	t.Parallel()
	base := muster.ProgramSpec{Image: "hpc", Build: "make", Run: "mpirun ./a", Inputs: []string{"data"}}
	args := []string{"-n", "1"}
	want := base.Version(args)
	if len(want) != 64 || want != base.Version([]string{"-n", "1"}) {
		t.Errorf("the version is %q", want)
	}
	for name, change := range map[string]func(*muster.ProgramSpec, *[]string){
		"image":         func(s *muster.ProgramSpec, _ *[]string) { s.Image = "hpc-12" },
		"build":         func(s *muster.ProgramSpec, _ *[]string) { s.Build = "make -j" },
		"run":           func(s *muster.ProgramSpec, _ *[]string) { s.Run = "mpirun ./b" },
		"inputs":        func(s *muster.ProgramSpec, _ *[]string) { s.Inputs = nil },
		"args":          func(_ *muster.ProgramSpec, a *[]string) { *a = []string{"-n 1"} },
		"build and run": func(s *muster.ProgramSpec, _ *[]string) { s.Build, s.Run = s.Run, s.Build },
	} {
		s, a := base, args
		change(&s, &a)
		if s.Version(a) == want {
			t.Errorf("another %s is the same version", name)
		}
	}
	s := base
	s.Check, s.Metric = "ok", &muster.ProgramMetric{Name: "rate", Pattern: "(.*)"}
	if s.Version(args) != want {
		t.Error("what is read from the output makes another version")
	}
}

// Two programs have one version only if they are the same.
func TestProgramVersionsDiffer(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringN(0, 4, -1)
		draw := func() (muster.ProgramSpec, []string) {
			return muster.ProgramSpec{Run: text.Draw(t, "run"), Build: text.Draw(t, "build"), Image: text.Draw(t, "image"),
				Inputs: rapid.SliceOfN(text, 1, 3).Draw(t, "inputs")}, rapid.SliceOfN(text, 1, 3).Draw(t, "args")
		}
		a, x := draw()
		b, y := draw()
		same := a.Run == b.Run && a.Build == b.Build && a.Image == b.Image && slices.Equal(a.Inputs, b.Inputs) && slices.Equal(x, y)
		if (a.Version(x) == b.Version(y)) != same {
			t.Fatalf("%+v %q and %+v %q", a, x, b, y)
		}
	})
}
