package image

import (
	"slices"
	"testing"
)

func TestBuiltinAliases(t *testing.T) {
	t.Parallel()
	info := "nvme.license=GPL\x00nvme.file=drivers/nvme/host/nvme\x00fuse.alias=devname:fuse\x00virtio_net.alias=virtio:d00000001v*\x00e1000.file=drivers/net/e1000\x00\x00broken"
	want := []string{"pci:v*d*sv*sd*bc01sc08i02*", "virtio:d00000001v*"}
	if got := builtinAliases([]byte(info)); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
