package executable_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/muster-hpc/muster/internal/executable"
)

// Programs that are written beside each other can be started at once.
func TestWrite(t *testing.T) {
	t.Parallel()
	for i := range 8 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for n := range 10 {
				program := filepath.Join(dir, fmt.Sprint(n))
				if err := executable.Write(program, []byte("#!/bin/sh\nexit 0\n"), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := exec.CommandContext(t.Context(), program).Run(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
