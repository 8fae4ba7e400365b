package local_test

import (
	"strings"
	"testing"

	"github.com/muster-hpc/muster/provider/local"
)

// TestScopeUnderSystemd asks a real systemd for a scope, as a server on a host
// with one hierarchy does: the systemd of a machine.
func TestScopeUnderSystemd(t *testing.T) {
	t.Parallel()
	cmd := strings.Join(local.ScopeCommand("muster-x"), " ")
	p := open(t, "1,memory=1GiB", withScript(t, `{
mkfifo /tmp/in
`+cmd+` </tmp/in &
exec 9>/tmp/in
i=0; while [ $((i+=1)) -le 300 ]; do sleep 0.1; grep -q x.scope /proc/$!/cgroup && break; done
cat /proc/$!/cgroup
mkdir -p /sys/fs/cgroup/muster.slice/muster-x.scope/hold && echo made
echo $! > /sys/fs/cgroup/muster.slice/muster-x.scope/hold/cgroup.procs && echo moved
systemctl daemon-reload
cat /proc/$!/cgroup
exec 9>&-
wait
i=0; while [ $((i+=1)) -le 300 ]; do sleep 0.1; [ -e /sys/fs/cgroup/muster.slice/muster-x.scope ] || break; done
ls -d /sys/fs/cgroup/muster.slice/muster-x.scope || echo gone
} >/share/out 2>&1
touch /share/done`))
	w := wants(1, nil)
	out := share(t, w)
	if errs := p.Ensure(t.Context(), w); errs != nil {
		t.Fatal(errs)
	}
	text := out(0)
	for _, want := range []string{"0::/muster.slice/muster-x.scope\n", "made\nmoved\n", "0::/muster.slice/muster-x.scope/hold\n", "gone\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
}
