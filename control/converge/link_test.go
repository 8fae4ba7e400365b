package converge_test

import (
	"context"
	"net"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/agent/client"
	"github.com/muster-hpc/muster/internal/pipes"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/provider/fake"
)

// over gives fake machines the client of real agents, whose connections are pipes.
func over(tb testing.TB, l *pipes.Listener) func(*fake.Machine, provider.Boot) fake.Link {
	hosts := &client.Hosts{Most: 16}
	return func(m *fake.Machine, b provider.Boot) fake.Link {
		dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return l.Dial(ctx, m.Facts().Management) }
		c, err := client.New(client.Options{Server: b.Bootstrap.Server, CA: b.Bootstrap.CA, Dial: dial, Version: "fake", Epoch: muster.EpochOf(b.Attempt), Hosts: hosts})
		if err != nil {
			tb.Error(err)
		}
		return c
	}
}
