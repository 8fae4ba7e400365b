package local_test

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/muster-hpc/muster/provider"
)

// attempts are what root inside a machine must not manage. Each line is a name
// and a command; a command that succeeds is a hole. Covers are taken off first,
// because root can: they are there to inform, not to protect.
const attempts = `
sysrq          umount /proc/sysrq-trigger; echo h > /proc/sysrq-trigger
core-pattern   echo x > /proc/sys/kernel/core_pattern
drop-caches    echo 1 > /proc/sys/vm/drop_caches
panic          echo 1 > /proc/sys/kernel/panic
modprobe-path  echo /x > /proc/sys/kernel/modprobe
sys-write      mount -o remount,rw /sys; echo always > /sys/kernel/mm/transparent_hugepage/enabled
sys-cpu        echo 0 > /sys/devices/system/cpu/cpu1/online
uevent         echo add > /sys/block/vda/uevent
disk-node      mknod /tmp/disk b 254 0
mem-node       mknod /tmp/mem c 1 1
disk           test -e /dev/vda
loop           test -e /dev/loop-control
kvm            test -e /dev/kvm
kmsg           umount /proc/kmsg; timeout 1 head -c1 /proc/kmsg
kcore          umount /proc/kcore; head -c1 /proc/kcore
clock          date -s 2000-01-01
nice           nice -n -10 true 2>&1 | grep -q . && false || test "$(nice -n -10 nice)" = -10
oom            echo -900 > /proc/self/oom_score_adj
memory-v1      mkdir /tmp/c; mount -t cgroup -o memory none /tmp/c && echo 99999999999 > /tmp/c/memory.limit_in_bytes
cpuset-v1      mkdir /tmp/d; mount -t cgroup -o cpuset none /tmp/d && echo 0-1 > /tmp/d/cpuset.cpus
cpuset-group   mkdir /tmp/d/mine
leave-v1       test -e /tmp/d/release_agent
leave-v2       ls -d /sys/fs/cgroup/../local-* /sys/fs/cgroup/muster-*
thaw           echo 1 > /sys/fs/cgroup/cgroup.kill
limit-pids     mkdir /tmp/e; mount -t cgroup -o pids none /tmp/e && echo max > /tmp/e/pids.max
affinity       taskset -c 1 true
host-names     grep -e muster- -e squashfs -e /var/tmp /proc/self/mountinfo
host-pids      test $(ls -d /proc/[0-9]* | wc -l) -gt 60
init-fds       ls -l /proc/1/fd | grep -e loop -e 'mnt:' -e 'net:'
read-only      mount -o remount,bind,rw /fixed; echo x > /fixed/x
set-uid-share  mount -o remount,bind,suid,dev /share; findmnt -no OPTIONS /share | grep -qv nosuid
fs-mount       mkdir /tmp/f; mount -t squashfs /etc/hostname /tmp/f
debugfs        mkdir /tmp/g; mount -t debugfs none /tmp/g
securityfs     mkdir /tmp/h; mount -t securityfs none /tmp/h
bpf            mkdir /tmp/i; mount -t bpf none /tmp/i && test -e /tmp/i/maps.debug && echo x > /tmp/i/x
netns          ip netns list | grep muster
host-net       ip -o link | grep -E '^[0-9]+: (eth0|m[0-9]|b[0-9])'
module         modprobe dummy
swap           swapoff -a 2>&1 | grep -q . && false || swapon /tmp/none
ptrace-host    nsenter -t $PPID -m -p true && test $PPID -gt 5000
hostname-host  nsenter --net=/proc/1/ns/net true && ip -o link | grep eth0
`

func TestHostileRoot(t *testing.T) {
	t.Parallel()
	var script strings.Builder
	var names []string
	script.WriteString("PATH=/usr/sbin:/usr/bin:/sbin:/bin; export PATH\n")
	for line := range strings.SplitSeq(strings.TrimSpace(attempts), "\n") {
		name, cmd, _ := strings.Cut(line, " ")
		names = append(names, name)
		script.WriteString("if ( " + strings.TrimSpace(cmd) + " ) >>/share/log 2>&1; then echo HOLE " + name + "; else echo held " + name + "; fi >>/share/out\n")
	}
	script.WriteString("touch /share/done\n")
	p := open(t, "1,cores=1,memory=1GiB", withScript(t, script.String()))
	w := wants(1, nil)
	out := share(t, w)
	fixed := t.TempDir()
	w[0].Boot.Shares = append(w[0].Boot.Shares, provider.BindMount{Path: fixed, Target: "/fixed", ReadOnly: true})
	if errs := p.Ensure(t.Context(), w); errs != nil {
		t.Fatal(errs)
	}
	text := out(0)
	if strings.Contains(text, "HOLE") || strings.Count(text, "held") != len(names) {
		log, _ := os.ReadFile(filepath.Join(w[0].Boot.Shares[0].Path, "log"))
		t.Errorf("%s\n%s", text, log)
	}
	if left, err := os.ReadDir(fixed); err != nil || len(left) > 0 {
		t.Error("a read-only share was written:", left, err)
	}
}

// TestSharesAndSeed sees what a machine is given: directories with the owners
// that it itself sets, and the seed for root alone.
func TestSharesAndSeed(t *testing.T) {
	t.Parallel()
	p := open(t, "1,memory=1GiB", withScript(t, `{
hostname; cat /etc/hostname
stat -c '%a %u' /run/muster/seed.json
su nobody -s /bin/sh -c 'cat /run/muster/seed.json' || echo unreadable
grep -o '"token":"[^"]*"' /run/muster/seed.json
ulimit -Hl
touch /share/mine; chown 1234:1234 /share/mine; stat -c %u /share/mine
df --output=size -B1 / | tail -1
ip -o -4 addr show | awk '{print $2, $4}'
cat /proc/1/environ | tr '\0' '\n' | grep container
} >/share/out
touch /share/done`))
	net := provider.Network{Cluster: "c-1", Index: 4, Subnet: netip.MustParsePrefix("10.128.16.0/20")}
	if err := p.EnsureNetworks(t.Context(), []provider.Network{net}); err != nil {
		t.Fatal(err)
	}
	w := wants(1, &net)
	w[0].Boot.Bootstrap.Token = "secret-token"
	out := share(t, w)
	if errs := p.Ensure(t.Context(), w); errs != nil {
		t.Fatal(errs)
	}
	text := out(0)
	for _, want := range []string{"n01\nn01\n", "400 0\n", "unreadable\n", "secret-token", "1234\n", "536870912\n",
		"mgmt0 10.90.0.2/32\n", "msg0 10.128.16.1/20\n", "container=muster\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
	st, err := os.Stat(filepath.Join(w[0].Boot.Shares[0].Path, "mine"))
	if err != nil {
		t.Fatal(err)
	}
	if sys, ok := st.Sys().(*syscall.Stat_t); !ok || sys.Uid != 1234 {
		t.Errorf("the owner on the host: %+v", st.Sys())
	}
}
