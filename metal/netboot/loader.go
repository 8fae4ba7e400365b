package netboot

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal/netboot/dhcp"
)

// LoaderDir is where Debian's package ipxe has its files.
const LoaderDir = "/usr/lib/ipxe"

// loaders are the files of a directory that machines may load, by name, and which
// kind of firmware gets which. snponly.efi uses the firmware's own driver for the
// network card that it booted from; ipxe.efi brings drivers, and is what there is
// otherwise. Files for 64-bit ARM are used if somebody put them there.
func loaders(dir, base string) (dhcp.Loaders, map[string][]byte, error) {
	out := dhcp.Loaders{Base: base}
	files := map[string][]byte{}
	for _, c := range []struct {
		to    *string
		names []string
	}{
		{&out.BIOS, []string{"undionly.kpxe"}},
		{&out.UEFI, []string{"snponly.efi", "ipxe.efi"}},
		{&out.ARM64, []string{"snponly-arm64.efi", "ipxe-arm64.efi"}},
	} {
		for _, name := range c.names {
			data, err := os.ReadFile(filepath.Join(dir, name))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return out, nil, muster.Errorf(muster.EUnavailable, "cannot read the boot loader %s in %s", name, dir).
					WithHint("see whether it is a file that the server may read").Wrap(err)
			}
			files[name] = data
			if *c.to == "" {
				*c.to = name
			}
		}
	}
	if out.BIOS == "" && out.UEFI == "" && out.ARM64 == "" {
		return out, nil, muster.Errorf(muster.ENotFound, "no boot loader in %s", dir).
			WithHint("install them with: apt-get install ipxe")
	}
	return out, files, nil
}
