package nodeconf_test

import (
	"reflect"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/nodes/nodeconf"
	"github.com/muster-hpc/muster/wire"
)

// Nodes find licence servers at the server's address, each name once; names of the cluster's own
// stay theirs, and where there is no way there are no names.
func TestLicences(t *testing.T) {
	t.Parallel()
	in := input(2, false)
	in.Licences = []muster.LicenceServer{{Host: "lic.example.org", Port: 27000}, {Host: "lic.example.org", Port: 27001}, {Host: "n02", Port: 1055}, {Host: "n02.cfd.muster", Port: 1056}}
	in.Gateway = func(muster.Node) string { return "10.90.0.1" }
	c, err := nodeconf.Build(in)
	if err != nil {
		t.Fatal(err)
	}
	if want := []wire.Host{{Name: "lic.example.org", Address: "10.90.0.1"}}; !reflect.DeepEqual(c.Outside, want) {
		t.Errorf("got %+v, want %+v", c.Outside, want)
	}
	in.Gateway = func(muster.Node) string { return "" }
	if c, err = nodeconf.Build(in); err != nil || c.Outside != nil {
		t.Errorf("without a way: %+v, %v", c.Outside, err)
	}
}
