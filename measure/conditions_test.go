package measure

import (
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
)

func TestDecodeConditions(t *testing.T) {
	t.Parallel()
	got, err := decodeConditions(strings.NewReader(`{"host":"n01","conditions":{"kernel":"6.1"},"counters":{"uptime":1,"cores":2,"user":1,"system":0,"idle":0}}` + "\n" + `{"host":"n02"}` + "\n"))
	if err != nil || got["n01"].Conditions.Kernel != "6.1" || len(got) != 2 {
		t.Errorf("%v: %+v", err, got)
	}
	for name, text := range map[string]string{
		"cut off": `{"host":"n01"}` + "\n" + `{"host":`, "no name": "{}\n", "no JSON": "mpirun: help\n", "too long": `{"host":"` + strings.Repeat("x", maxConditionsLine) + `"}` + "\n",
	} {
		if _, err := decodeConditions(strings.NewReader(text)); muster.CodeOf(err) != muster.EInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What nodes print about themselves is outside bytes.
func FuzzDecodeConditions(f *testing.F) {
	f.Add(`{"host":"n01","conditions":{"numa":[{"cpus":[1]}]},"counters":{"uptime":1e300}}` + "\n")
	f.Add("\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := decodeConditions(strings.NewReader(text))
		if err != nil && muster.CodeOf(err) != muster.EInvalid {
			t.Errorf("%v", err)
		}
		for host := range got {
			if host == "" {
				t.Error("somebody without a name")
			}
		}
	})
}
