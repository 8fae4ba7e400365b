package local_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider"
)

// TestClustersApart sees that machines of one cluster meet and those of two do
// not, with everything that a machine has for trying.
func TestClustersApart(t *testing.T) {
	t.Parallel()
	p := open(t, "3,memory=1GiB", withScript(t, `
mkdir -p /run/sshd
[ -e /etc/ssh/ssh_host_ed25519_key ] || ssh-keygen -q -t ed25519 -N "" -f /etc/ssh/ssh_host_ed25519_key
/usr/sbin/sshd
try() { if timeout 0.6 bash -c "exec 3<>/dev/tcp/$2/$3" 2>/dev/null; then echo "$1 open" >>/share/out; else echo "$1 closed" >>/share/out; fi; }
case $(hostname) in
n01)
  for i in $(seq 100); do timeout 2 bash -c "exec 3<>/dev/tcp/10.128.0.2/22" 2>/dev/null && break; sleep 0.05; done
  try mate 10.128.0.2 22
  try stranger 10.128.0.3 22
  try mate-management 10.90.0.3 22
  try stranger-management 10.90.0.4 22
  try gateway-ssh 10.90.0.1 22
  try proxy 10.90.0.1 3128
  ip route add default via 10.90.0.1 dev mgmt0 onlink
  ip addr add 10.90.0.4/32 dev mgmt0
  try outside 192.0.2.1 80
  ip route add 10.128.0.3/32 via 10.90.0.1 dev mgmt0 onlink
  try stranger-routed 10.128.0.3 22;;
n03)
  for i in $(seq 3); do timeout 0.5 bash -c "exec 3<>/dev/tcp/10.128.0.1/22" 2>/dev/null && echo "mate open" >>/share/out; sleep 0.05; done
  echo tried >>/share/out;;
*) echo >/share/out;;
esac
touch /share/done`))
	a := provider.Network{Cluster: "c-a", Index: 0, Subnet: netip.MustParsePrefix("10.128.0.0/20")}
	b := provider.Network{Cluster: "c-b", Index: 1, Subnet: a.Subnet} // worse than the real plan
	if err := p.EnsureNetworks(t.Context(), []provider.Network{a, b}); err != nil {
		t.Fatal(err)
	}
	w := wants(3, &a)
	w[2].Boot.Cluster, w[2].Boot.Message.Network = "c-b", b
	out := share(t, w)
	if errs := p.Ensure(t.Context(), w); errs != nil {
		t.Fatal(errs)
	}
	for i := range w {
		text := out(i)
		if i == 0 && !strings.Contains(text, "mate open\n") {
			t.Errorf("machines of one cluster do not meet:\n%s", text)
		}
		if rest := strings.ReplaceAll(text, "mate open\n", ""); i != 1 && strings.Contains(rest, "open") || i == 2 && strings.Contains(text, "open") {
			t.Errorf("machine %d got through:\n%s", i, text)
		}
	}
	// A network with the same name is found again; one that goes is gone.
	if err := p.RemoveNetworks(t.Context(), []muster.ClusterID{"c-b", "c-none"}); err != nil {
		t.Error(err)
	}
	nets, err := p.Networks(t.Context())
	if err != nil || len(nets) != 1 || nets[0] != "c-a" {
		t.Error(nets, err)
	}
}
