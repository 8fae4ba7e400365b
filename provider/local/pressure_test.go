package local_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/provider/local"
)

// TestPressure has one machine take memory that nobody is charged for, and its
// neighbour use what it was given. On a host that is short the first is stopped.
func TestPressure(t *testing.T) {
	t.Parallel()
	p := open(t, "2,memory=512MiB", func(c *local.Config) {
		c.Networks, c.Open = 4, []string{"packet"}
		withScript(t, `PATH=/usr/sbin:/usr/bin:/sbin:/bin; export PATH
if [ $(hostname) = n01 ]; then
  ip netns add hidden
  ip netns exec hidden ip link add br0 type bridge
  ip netns exec hidden ip link add d0 type veth peer name d1
  ip netns exec hidden ip link set d0 master br0
  i=0; while [ $i -lt 20000 ]; do printf 'fdb add 02:00:00:%02x:%02x:%02x dev d0 master\n' $((i>>16&255)) $((i>>8&255)) $((i&255)); i=$((i+1)); done >/tmp/fdb
  ip netns exec hidden bridge -batch /tmp/fdb
  i=1; while [ $i -lt 201 ]; do echo "neigh add 10.9.0.$i lladdr 02:00:00:00:00:01 dev br0 nud permanent"; i=$((i+1)); done >/tmp/neigh
  ip netns exec hidden ip link set br0 up
  ip netns exec hidden ip -batch /tmp/neigh
  perl -e 'socket(my $s, 17, 3, 0x300) or die "socket: $!"; setsockopt($s, 263, 5, pack("IIII", 65536, 16, 2048, 512)) or die "ring: $!"; open(T, ">", "/share/ring"); sleep 60' &
  while [ ! -e /share/ring ]; do sleep 0.05; done
else
  head -c 300m /dev/zero >/dev/shm/x
fi >/share/out 2>&1
touch /share/done`)(c)
	})
	w := wants(2, nil)
	out := share(t, w)
	if errs := p.Ensure(t.Context(), w); errs != nil {
		t.Fatal(errs)
	}
	text := out(0)
	out(1)
	networks, neighbours, forwarding, rings := local.Cost(t, p, w[0].Machine)
	if networks != 2 || neighbours < 200 || forwarding < 20000 || rings != 1<<20 {
		t.Errorf("counted %d network namespaces, %d neighbours, %d entries of forwarding tables and %d bytes of rings; the machine said %s",
			networks, neighbours, forwarding, rings, text)
	}
	if networks, _, forwarding, rings = local.Cost(t, p, w[1].Machine); networks != 1 || forwarding > 100 || rings != 0 {
		t.Errorf("counted %d network namespaces, %d entries of forwarding tables and %d bytes of rings of the neighbour", networks, forwarding, rings)
	}
	local.Short(t, p, 64<<20, 1<<20)
	seen, err := p.Observe(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if seen[0].State != provider.StateOff || seen[0].Err == nil || !strings.Contains(seen[0].Err.Error(), "forwarding tables") {
		t.Errorf("the machine that took the host's memory: %+v", seen[0])
	}
	if seen[1].State != provider.StateRunning {
		t.Errorf("its neighbour: %+v", seen[1])
	}
	// While the host is short nothing is started.
	w[0].Boot.Attempt++
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if errs := p.Ensure(ctx, w[:1]); errs == nil || muster.CodeOf(errs[0]) != muster.EUnavailable {
		t.Errorf("started on a host that is short of memory: %v", errs)
	}
	local.Short(t, p, 64<<20, 60<<30)
	if errs := p.Ensure(t.Context(), w[:1]); errs != nil {
		t.Errorf("not started on a host that has memory again: %v", errs)
	}
}

// TestPressureOfNobody sees that machines that use what they were given are not stopped
// for it, however short the host is.
func TestPressureOfNobody(t *testing.T) {
	t.Parallel()
	p := open(t, "2,memory=512MiB", withScript(t, "head -c 300m /dev/zero >/dev/shm/x; touch /share/out /share/done"))
	w := wants(2, nil)
	out := share(t, w)
	if errs := p.Ensure(t.Context(), w); errs != nil {
		t.Fatal(errs)
	}
	out(0)
	out(1)
	local.Short(t, p, 24<<30, 1<<20)
	seen, err := p.Observe(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range seen {
		if s.State != provider.StateRunning {
			t.Errorf("stopped for a shortage that is not its own: %+v", s)
		}
	}
}

func TestHostLimits(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for file, value := range map[string]string{"kernel/pid_max": "32768", "kernel/threads-max": "200000", "fs/file-max": "9223372036854775807",
		"net/ipv4/neigh/default/gc_thresh3": "1024"} {
		at := filepath.Join(root, "proc/sys", file)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(value+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	// Ten machines would need more tasks than there are: all of them together stay below.
	if each := local.TasksEach(root, 10); each*10 > 32768-4096 || each < 2000 {
		t.Errorf("each of ten machines may have %d tasks of 32768", each)
	}
	local.RaiseHostLimits(root, 10)
	if each := local.TasksEach(root, 10); each != 16384 {
		t.Errorf("each of ten machines may have %d tasks after the limit was raised", each)
	}
	for file, least := range map[string]string{"kernel/threads-max": "200000", "net/ipv4/neigh/default/gc_thresh3": "3784"} {
		if b, err := os.ReadFile(filepath.Join(root, "proc/sys", file)); err != nil || strings.TrimSpace(string(b)) != least {
			t.Errorf("%s is %s, want %s (%v)", file, b, least, err)
		}
	}
}
