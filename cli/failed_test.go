package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Every problem that made a cluster fail is told with what to do about it.
func TestShowTellsProblems(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	a := &app{env: Env{Out: &out}}
	a.writeCluster(&out, wire.Cluster{Name: "cfd", Status: muster.ClusterFailed, Reason: &muster.Error{
		Code: muster.EInvalid, Message: "these packages cannot be added", Hint: "correct the packages of the request",
		Problems: []muster.Problem{{Field: "packages[0]", Message: "there is no package zhs", Hint: "did you mean zsh?"}},
	}}, time.Now())
	for _, want := range []string{"failed: these packages cannot be added\n  packages[0]: there is no package zhs (did you mean zsh?)\n  correct the packages"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in %s", want, out.String())
		}
	}
}

// The machines that were looked at are counted once.
func TestConsideredCountsOnce(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	writeConsidered(&out, muster.Answer{Fits: 4, Free: 1, Rejections: []muster.Rejection{
		{Reason: "cores", Count: 2}, {Reason: "busy", Count: 1}, {Reason: "not-answering", Count: 2},
	}})
	if !strings.Contains(out.String(), "6 machines: 4 fit, 1 of them free") {
		t.Error(out.String())
	}
}

func TestInterfaceText(t *testing.T) {
	t.Parallel()
	for want, nic := range map[string]muster.NIC{
		"management veth": {Use: "management", Kind: "veth"},
		"message ethernet, 02:00:00:00:00:01, 10Gb/s": {Use: "message", Kind: "ethernet", MAC: "02:00:00:00:00:01", Speed: 1e10},
	} {
		if got := interfaceText(nic); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
