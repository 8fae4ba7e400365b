package fake_test

import (
	"context"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/provider/fake"
)

// A machine is attached to its cluster's network with each interface for messages.
func TestAllMessageInterfaces(t *testing.T) {
	t.Parallel()
	w := fake.New(fake.Options{Machines: 1, NICs: 2, Agent: func(ctx context.Context, _ *fake.Machine, _ provider.Boot) { <-ctx.Done() }})
	defer w.Close()
	p := w.Open()
	n := provider.Network{Cluster: "c-1", Index: 7, Subnet: netip.MustParsePrefix("10.128.112.0/20")}
	if err := p.EnsureNetworks(t.Context(), []provider.Network{n}); err != nil {
		t.Fatal(err)
	}
	machines, err := p.Discover(t.Context())
	if err != nil || len(machines) != 1 || len(machines[0].Facts.NICs) != 2 || machines[0].Facts.NICs[0].MAC == machines[0].Facts.NICs[1].MAC {
		t.Fatalf("%+v, %v", machines, err)
	}
	boot := &provider.Boot{Attempt: 1, Message: &provider.Attachment{Network: n, Address: netip.MustParsePrefix("10.128.112.10/20")}}
	if errs := p.Ensure(t.Context(), []provider.DesiredState{{Machine: machines[0].ID, Power: provider.PowerBoot, Boot: boot}}); len(errs) > 0 {
		t.Fatal(errs)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := p.Console(ctx, machines[0].ID, false)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	text, want := "", []string{"msg0 10.128.112.10/20", "msg1 fd6d:7573:7401:7::a80:700a/64"}
	for b := make([]byte, 512); !strings.Contains(text, want[0]) || !strings.Contains(text, want[1]); {
		k, err := c.Read(b)
		if text += string(b[:k]); err != nil {
			t.Fatalf("%v: it printed %q", err, text)
		}
	}
}
