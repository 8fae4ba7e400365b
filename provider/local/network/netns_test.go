package network_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/muster-hpc/muster/provider/local/network"
)

// A namespace that was named before anybody used `ip netns` can be removed after
// somebody did.
func TestNamesBesideIP(t *testing.T) {
	if os.Getenv("MUSTER_TEST_NETNS") != "" {
		namesBesideIP(t)
		return
	}
	if os.Geteuid() != 0 {
		t.Skip("mount namespaces need root")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("ip is not there")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// A /run/netns of its own, which is no mount yet.
	c := exec.CommandContext(t.Context(), "unshare", "-m", "--propagation", "private", "sh", "-c",
		`mount -t tmpfs tmpfs /run && mkdir /run/netns && exec "$0" -test.run '^TestNamesBesideIP$' -test.v`, self)
	c.Env = append(os.Environ(), "MUSTER_TEST_NETNS=1")
	if out, err := c.CombinedOutput(); err != nil || !strings.Contains(string(out), "PASS") {
		t.Fatalf("%v\n%s", err, out)
	}
}

func namesBesideIP(t *testing.T) {
	ns, err := network.OpenNamespace("muster-beside", true)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ns.Close() }()
	for _, args := range [][]string{{"netns", "add", "other"}, {"netns", "exec", "muster-beside", "true"}, {"netns", "del", "other"}} {
		if out, err := exec.CommandContext(t.Context(), "ip", args...).CombinedOutput(); err != nil {
			t.Fatalf("ip %v: %v %s", args, err, out)
		}
	}
	if err := network.DeleteNamespace("muster-beside"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("/run/netns/muster-beside"); err == nil {
		t.Error("its name is still there")
	}
}
