package spec

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s:\ngot:\n%s\nwant:\n%s", file, got, want)
	}
}

// The same request in three formats has one spec.
func TestGolden(t *testing.T) {
	for _, name := range []string{"full", "small"} {
		for _, f := range Formats() {
			data, err := os.ReadFile(filepath.Join("testdata", name+"."+string(f)))
			if err != nil {
				t.Fatal(err)
			}
			_, s, err := Read(data, FormatOf("", "", data), Defaults{Project: "default", Users: []string{"carol"}})
			if err != nil {
				t.Fatalf("%s.%s: %v", name, f, err)
			}
			text, err := json.MarshalIndent(s, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden(t, filepath.Join("testdata", name+".golden.json"), string(text)+"\n")
		}
	}
}

// Every bad request reports all that is wrong with it.
func TestGoldenBad(t *testing.T) {
	files, err := filepath.Glob("testdata/*.bad.*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, ".txt") {
			continue
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			_, _, err = Read(data, FormatOf("", file, data), Defaults{})
			var e *muster.Error
			if !errors.As(err, &e) || e.Code != muster.EInvalid {
				t.Fatalf("error is %v", err)
			}
			var b strings.Builder
			b.WriteString(e.Message + "\n")
			for _, p := range e.Problems {
				b.WriteString(p.String() + "\n")
			}
			golden(t, file+".txt", b.String())
		})
	}
}
