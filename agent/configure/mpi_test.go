package configure

import (
	"strings"
	"testing"

	"github.com/muster-hpc/muster/wire"
)

// Where nothing of ours has to say which network is for messages, nothing does: users' lists of
// interfaces hold. Open MPI 4 uses both interfaces there, and one of them for next to nothing.
func TestMPIParams(t *testing.T) {
	t.Parallel()
	cfg := &wire.NodeConfig{Interface: "msg0", Management: "mgmt0"}
	for _, c := range []struct {
		five, isolated bool
		want           []string
	}{
		{true, true, nil},
		{false, true, []string{"btl_tcp_latency_mgmt0 = 1000000", "btl_tcp_bandwidth_mgmt0 = 1"}},
		{true, false, []string{"btl_tcp_if_include = msg0"}},
		{false, false, []string{"btl_tcp_if_include = msg0"}},
	} {
		got := strings.TrimSpace(mpiParams(cfg, c.five, c.isolated))
		if want := strings.Join(c.want, "\n"); got != want {
			t.Errorf("release 5 %v, isolated %v: %q, want %q", c.five, c.isolated, got, want)
		}
	}
}
