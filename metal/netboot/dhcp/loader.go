package dhcp

import (
	"strconv"
)

// Loaders are the names of boot loaders, as TFTP and HTTP serve them. An empty
// name: machines of that kind get an address and no loader.
type Loaders struct {
	BIOS  string // undionly.kpxe
	UEFI  string // snponly.efi or ipxe.efi
	ARM64 string // an iPXE for 64-bit ARM
	// Base is the URL of the HTTP server, ending in "/": it has the same names
	// under loader/, and the scripts of boots under boot/.
	Base string
}

// bootFile is what the machine is to load: a name for TFTP, or a URL. Empty: it
// is not to boot from the network, and why says so when it had asked to.
func (l Loaders) bootFile(r *Request, v Verdict) (name, why string) {
	switch {
	case r.Firmware == NoFirmware && !r.IPXE:
		return "", ""
	case v.Boot == "":
		return "", "no boot was ordered for it"
	case r.IPXE && r.HTTP:
		return l.Base + "boot/" + v.Boot + "/script", ""
	}
	switch r.Firmware {
	case BIOS:
		name = l.BIOS
	case UEFI, UEFIHTTP:
		name = l.UEFI
	case ARM64, ARM64HTTP:
		name = l.ARM64
	}
	if name == "" {
		return "", "no boot loader for its firmware (" + r.Firmware.String() + ", option 93 is " + hex(r.arch) + ")"
	}
	if r.Firmware.HTTP() {
		name = l.Base + "loader/" + name
	}
	return name, ""
}

// hex is bytes for a log, and not more of them than a line bears.
func hex(b []byte) string {
	if len(b) > 16 {
		b = b[:16]
	}
	out := make([]byte, 0, 2*len(b))
	for _, c := range b {
		if c < 16 {
			out = append(out, '0')
		}
		out = strconv.AppendUint(out, uint64(c), 16)
	}
	return string(out)
}
