package certificate_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/certificate"
)

const (
	exampleFile = "../docs/users/certificate.example.json"
	exampleKey  = "../docs/users/certificate.example.pub"
)

// What was signed once must be believed for ever: the example in docs is only
// written anew (MUSTER_UPDATE=1) to show a new field.
func TestExampleIsStillValid(t *testing.T) {
	t.Parallel()
	if os.Getenv("MUSTER_UPDATE") != "" {
		var lines []byte
		for _, c := range []muster.Certificate{manifest(t, node(), other()), node(), other()} {
			lines = append(append(lines, sign(t, c)...), '\n')
		}
		must(t, os.WriteFile(exampleFile, lines, 0o644))
		must(t, os.WriteFile(exampleKey, []byte(public(t, key(1)).PEM()), 0o644))
	}
	keyText, err := os.ReadFile(exampleKey)
	must(t, err)
	keys, err := certificate.ParseKeys(keyText)
	must(t, err)
	text, err := os.ReadFile(exampleFile)
	must(t, err)
	split, err := certificate.Split(text)
	must(t, err)
	for i, r := range certificate.VerifyAll(split, keys, noon().Add(12*time.Hour), nil) {
		if r.Err != nil {
			t.Errorf("certificate %d: %v", i, r.Err)
		}
	}
}

// The recipe of docs/users/certificate.md for those without Muster does what it says.
func TestRecipeWithoutMuster(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"sh", "python3", "openssl"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("no %s here", tool)
		}
	}
	docs, err := os.ReadFile("../docs/users/certificate.md")
	must(t, err)
	_, rest, _ := strings.Cut(string(docs), "```sh\n")
	recipe, _, ok := strings.Cut(rest, "```\n")
	if !ok {
		t.Fatal("docs/users/certificate.md has no recipe")
	}
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "muster.pub"), []byte(public(t, key(1)).PEM()), 0o600))
	try := func(e []byte) (string, error) {
		must(t, os.WriteFile(filepath.Join(dir, "n01.json"), append(e, '\n'), 0o600))
		c := exec.CommandContext(t.Context(), "sh", "-e", "-c", recipe)
		c.Dir = dir
		out, err := c.CombinedOutput()
		return string(out), err
	}
	good := sign(t, node())
	if out, err := try(good); err != nil {
		if strings.Contains(out, "rawin") {
			t.Skip("an openssl before 3.0")
		}
		t.Fatalf("%v: %s", err, out)
	}
	if out, err := try(bytes.Replace(good, []byte(`"launches":6`), []byte(`"launches":7`), 1)); err == nil {
		t.Fatalf("an altered certificate passes: %s", out)
	}
}
