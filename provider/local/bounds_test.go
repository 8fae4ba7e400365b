package local_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster/provider/local"
)

// TestBounds has root of one machine take what the kernel counts, with all users that
// it has, and sees that the machine's own bounds hold and its neighbour lacks nothing.
func TestBounds(t *testing.T) {
	t.Parallel()
	p := open(t, "2,cores=1,memory=512MiB", func(c *local.Config) {
		c.Networks = 4
		withScript(t, `PATH=/usr/sbin:/usr/bin:/sbin:/bin; export PATH
many() { # name, how many, command that holds one
  for i in $(seq $2); do ( exec $3 sleep 30 ) 2>/dev/null & done
  sleep 1; echo "$1 $(pgrep -cx sleep)"; pkill -x sleep; wait; sleep 0.2
}
{
if [ $(hostname) = n01 ]; then
  # Root rewrites the bounds of its own namespace first: they are not the ones that hold.
  for f in /proc/sys/user/max_*_namespaces; do echo 1000000 >$f; done
  bash -c 'echo "locked $(ulimit -Hl) tasks $(ulimit -Hu) queues $(ulimit -Hq) signals $(ulimit -Hi) end"'
  many networks 12 "unshare -n"
  many users-networks 12 "setpriv --reuid 1000 --regid 1000 --clear-groups unshare -Urn"
  for i in $(seq 6); do ( exec setpriv --reuid 100$i --regid 1000 --clear-groups unshare -Urn sleep 30 ) 2>/dev/null & done
  many other-users-networks 6 "unshare -n"
  ulimit -n 4096
  hold='$n = 0; for (1..1200) { last if syscall(272, 0x04000000); open(my $f, "<", "/proc/self/ns/uts") or die; push @all, $f; $n++ }'
  perl -e "$hold"' print "hosts $n\n"'
  ulimit -Hl unlimited 2>/dev/null && echo "locked raised"
  cat /proc/sys/kernel/pid_max >/dev/null
  grep Seccomp: /proc/1/status /proc/self/status
  mkdir -p /sys/fs/cgroup/many; i=0
  while [ $i -lt 5000 ] && mkdir /sys/fs/cgroup/many/$i 2>/dev/null; do i=$((i+1)); done
  [ $i -lt 4096 ] && echo groups bounded
  rmdir /sys/fs/cgroup/many/*/ /sys/fs/cgroup/many
  perl -e "$hold"' open(T, ">", "/share/taken"); sleep 30' &
  while [ ! -e /share/go ]; do sleep 0.1; done
else
  while [ ! -e /share/go ]; do sleep 0.1; done
  unshare -n true && unshare -u true && echo neighbour lives
  setpriv --reuid 1000 --regid 1000 --clear-groups unshare -Urmpf --mount-proc sh -c 'mount -t tmpfs none /mnt && echo container lives'
fi
} >/share/out 2>&1
touch /share/done`)(c)
	})
	w := wants(2, nil)
	out := share(t, w)
	if errs := p.Ensure(t.Context(), w); errs != nil {
		t.Fatal(errs)
	}
	shared := func(i int, name string) string {
		return filepath.Join(w[i].Boot.Shares[len(w[i].Boot.Shares)-1].Path, name)
	}
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(shared(0, "taken")); err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal("it did not take all that it may: ", out(0))
		}
	}
	texts := map[int]string{}
	for _, i := range []int{1, 0} { // the first holds everything until the second is done
		if err := os.WriteFile(shared(i, "go"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		texts[i] = out(i)
	}
	first, second := texts[0], texts[1]
	for _, want := range []string{"networks 4\n", "users-networks 4\n", "other-users-networks 4\n",
		"tasks 16384 ", "signals 32768 ", "groups bounded\n", "/proc/1/status:Seccomp:\t2\n", "/proc/self/status:Seccomp:\t2\n"} {
		if !strings.Contains(first, want) {
			t.Errorf("no %q in:\n%s", want, first)
		}
	}
	var hosts int
	for line := range strings.Lines(first) {
		_, _ = fmt.Sscanf(line, "hosts %d", &hosts)
	}
	if hosts < 900 || hosts > 1024 {
		t.Errorf("it could have %d host names of its own, want the bound of 1024", hosts)
	}
	if strings.Contains(first, "locked raised") || strings.Contains(first, "locked unlimited") {
		t.Errorf("it can lock memory without bound:\n%s", first)
	}
	for _, want := range []string{"neighbour lives\n", "container lives\n"} {
		if !strings.Contains(second, want) {
			t.Errorf("no %q on the neighbour:\n%s", want, second)
		}
	}
}

// TestDoors tries from inside a machine what is closed, and what the site opened.
func TestDoors(t *testing.T) {
	t.Parallel()
	script := withScript(t, `for family in 1 2 16 17 38 40; do
perl -e 'print "family $ARGV[0] ", (socket(my $s, $ARGV[0], 3, 0) || $!{EPROTONOSUPPORT} || $!{ESOCKTNOSUPPORT} ? "open" : "closed: $!"), "\n"' $family
done >/share/out 2>&1
for call in 425 426 427 248 249 250 298; do
perl -e '$! = 0; syscall($ARGV[0], 0, 0, 0, 0, 0); print "call $ARGV[0] ", ($!{ENOSYS} ? "closed" : "open"), "\n"' $call
done >>/share/out 2>&1
touch /share/done`)
	for _, c := range []struct {
		name string
		open []string
		want []string
	}{
		{"closed", nil, []string{"family 1 open", "family 2 open", "family 16 open", "family 17 closed", "family 38 closed", "family 40 closed",
			"call 425 closed", "call 426 closed", "call 427 closed", "call 248 closed", "call 249 closed", "call 250 closed", "call 298 closed"}},
		{"opened", []string{"packet", "keys"}, []string{"family 17 open", "family 40 closed", "call 425 closed", "call 250 open"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := open(t, "1,memory=512MiB", func(cfg *local.Config) { script(cfg); cfg.Open = c.open })
			w := wants(1, nil)
			out := share(t, w)
			if errs := p.Ensure(t.Context(), w); errs != nil {
				t.Fatal(errs)
			}
			text := out(0)
			for _, want := range c.want {
				if !strings.Contains(text, want) {
					t.Errorf("no %q in:\n%s", want, text)
				}
			}
			// A shell on the console is under the same filter.
			typing, shell := console(t, p, true)
			shell.await(t, "# ")
			_, _ = typing.Write([]byte("perl -e 'socket(my $s, 40, 1, 0) or print \"refused: $!\\n\"'; ulimit -Hu; grep Seccomp: /proc/self/status\n"))
			shell.await(t, "refused: Address family not supported")
			shell.await(t, "16384")
			shell.await(t, "Seccomp:\t2")
		})
	}
}

// TestUnknownDoor refuses what cannot be opened.
func TestUnknownDoor(t *testing.T) {
	t.Parallel()
	_, err := local.New(t.Context(), local.Config{Dir: t.TempDir(), Instance: "none", Open: []string{"packets"}})
	if err == nil || !strings.Contains(err.Error(), `"packets"`) {
		t.Errorf("an unknown door: %v", err)
	}
}
