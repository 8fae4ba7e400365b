package local_test

import (
	"strings"
	"testing"

	"github.com/muster-hpc/muster/provider"
)

// TestLimits sees that a machine that takes too much hurts itself only.
func TestLimits(t *testing.T) {
	t.Parallel()
	p := open(t, "2,cores=1,memory=256MiB", withScript(t, `{
if [ $(hostname) = n01 ]; then
  (head -c 800m /dev/zero | tail -c 800m >/dev/null); echo taken $?
  head -c 300m /dev/zero >/dev/shm/x; echo shm $?; rm /dev/shm/x
  head -c 300m /dev/zero >/root/x; echo root $?
  rm /root/x
fi
systemctl is-system-running
cat /run/muster/cgroup/pids/pids.max /run/muster/cgroup/memory/memory.limit_in_bytes
} >/share/out 2>&1
touch /share/done`))
	w := wants(2, nil)
	out := share(t, w)
	if errs := p.Ensure(t.Context(), w); errs != nil {
		t.Fatal(errs)
	}
	first, second := out(0), out(1)
	for _, want := range []string{"taken 137\n", "shm 1\n", "root 1\n"} {
		if !strings.Contains(first, want) {
			t.Errorf("no %q in:\n%s", want, first)
		}
	}
	if strings.Contains(second, "cannot") || strings.Contains(second, "No such") {
		t.Skip("no old hierarchies here:", second)
	}
	if !strings.Contains(second, "16384\n268435456\n") {
		t.Errorf("limits of the second:\n%s", second)
	}
	seen, err := p.Observe(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range seen {
		if s.State != provider.StateRunning {
			t.Errorf("%+v", s)
		}
	}
}
