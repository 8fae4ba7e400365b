package local_test

import (
	"strings"
	"testing"
)

// TestCores sees that everything in a machine that counts cores agrees.
func TestCores(t *testing.T) {
	script := `{
echo nproc $(nproc)
echo online $(getconf _NPROCESSORS_ONLN)
echo cpuinfo $(grep -c ^processor /proc/cpuinfo)
command -v lstopo-no-graphics >/dev/null && echo hwloc $(lstopo-no-graphics --only pu | wc -l)
command -v slurmd >/dev/null && slurmd -C
} >/share/out
touch /share/done`
	p := open(t, "2,cores=1,memory=1GiB", withScript(t, script))
	w := wants(2, nil)
	out := share(t, w)
	if errs := p.Ensure(t.Context(), w); errs != nil {
		t.Fatal(errs)
	}
	for i := range w {
		text := out(i)
		for _, want := range []string{"nproc 1\n", "online 1\n", "cpuinfo 1\n"} {
			if !strings.Contains(text, want) {
				t.Errorf("machine %d: no %q in:\n%s", i, want, text)
			}
		}
		if strings.Contains(text, "hwloc ") && !strings.Contains(text, "hwloc 1\n") {
			t.Errorf("machine %d: hwloc sees other cores:\n%s", i, text)
		}
		if strings.Contains(text, "CPUs=") && !strings.Contains(text, "CPUs=1 ") {
			t.Errorf("machine %d: slurmd sees other cores:\n%s", i, text)
		}
	}
}
