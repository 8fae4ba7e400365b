package dhcp

// Firmware is what asks for a boot loader, as option 93 tells it.
type Firmware int

// Kinds of firmware. The zero value asked for no boot loader: an operating
// system that wants an address.
const (
	NoFirmware    Firmware = iota
	BIOS                   // PXE of a BIOS, x86
	UEFI                   // PXE of UEFI, x86-64
	UEFIHTTP               // HTTP boot of UEFI, x86-64: wants a URL
	ARM64                  // PXE of UEFI, 64-bit ARM
	ARM64HTTP              // HTTP boot of UEFI, 64-bit ARM
	OtherFirmware          // something this service has no loader for
)

// String is a word for a log.
func (f Firmware) String() string {
	switch f {
	case NoFirmware:
		return "none"
	case BIOS:
		return "bios"
	case UEFI:
		return "uefi"
	case UEFIHTTP:
		return "uefi-http"
	case ARM64:
		return "arm64"
	case ARM64HTTP:
		return "arm64-http"
	}
	return "other"
}

// HTTP says whether it fetches its loader by HTTP and wants a URL.
func (f Firmware) HTTP() bool { return f == UEFIHTTP || f == ARM64HTTP }

// UEFI reports whether it is UEFI; known is false where that cannot be said of it.
func (f Firmware) UEFI() (uefi, known bool) {
	switch f {
	case BIOS:
		return false, true
	case UEFI, UEFIHTTP, ARM64, ARM64HTTP:
		return true, true
	}
	return false, false
}

// firmwareOf reads option 93 (RFC 4578, numbers as IANA has them). The numbers 7
// and 9 are both seen from x86-64: the RFC and its errata swap them.
func firmwareOf(option []byte) Firmware {
	if len(option) < 2 || len(option)%2 != 0 {
		return OtherFirmware
	}
	// A list: the first that is known counts, as the client's favourite.
	for ; len(option) >= 2; option = option[2:] {
		switch int(option[0])<<8 | int(option[1]) {
		case 0:
			return BIOS
		case 7, 9:
			return UEFI
		case 16:
			return UEFIHTTP
		case 11:
			return ARM64
		case 19:
			return ARM64HTTP
		}
	}
	return OtherFirmware
}
