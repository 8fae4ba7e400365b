package facts

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
)

// smbios is what is of use of the tables that the firmware leaves: SMBIOS Reference
// Specification (DMTF DSP0134), sections 7.1, 7.2 and 7.18.
type smbios struct {
	maker, product, serial, uuid, firmware string
	dimms                                  []muster.DIMM
}

// Types of structures.
const (
	typeBIOS   = 0
	typeSystem = 1
	typeMemory = 17
	typeEnd    = 127
)

// maxStructures is more than any firmware has.
const maxStructures = 1 << 16

// parseSMBIOS reads the table of structures. What is cut off or makes no sense is
// left out; what came before it stays.
func parseSMBIOS(b []byte) smbios {
	var s smbios
	for range maxStructures {
		if len(b) < 4 {
			break
		}
		kind, size := b[0], int(b[1])
		if size < 4 || size > len(b) {
			break
		}
		fixed := b[:size]
		text, rest, ok := stringsAfter(b[size:])
		if !ok {
			break
		}
		at := func(i int) string {
			if i >= len(fixed) {
				return ""
			}
			return word(text, int(fixed[i]))
		}
		switch kind {
		case typeBIOS:
			s.firmware = at(5)
		case typeSystem:
			s.maker, s.product, s.serial = at(4), at(5), at(7)
			if len(fixed) >= 24 {
				s.uuid = uuid(fixed[8:24])
			}
		case typeMemory:
			if d, ok := memoryModule(fixed, at); ok {
				s.dimms = append(s.dimms, d)
			}
		case typeEnd:
			rest = nil
		}
		b = rest
	}
	slices.SortStableFunc(s.dimms, func(a, b muster.DIMM) int { return strings.Compare(a.Slot, b.Slot) })
	return s
}

// stringsAfter cuts the strings that follow a structure: each ended by a zero byte,
// all by another one.
func stringsAfter(b []byte) (text []string, rest []byte, ok bool) {
	if len(b) >= 2 && b[0] == 0 && b[1] == 0 {
		return nil, b[2:], true // none at all
	}
	for len(b) > 0 && b[0] != 0 {
		i := slices.Index(b, 0)
		if i < 0 {
			return nil, nil, false
		}
		text = append(text, string(b[:i]))
		b = b[i+1:]
	}
	if len(b) == 0 {
		return nil, nil, false
	}
	return text, b[1:], true
}

// word is the string of a number, from 1; "" for none, and for what makers write
// who did not fill it in.
func word(text []string, n int) string {
	if n < 1 || n > len(text) {
		return ""
	}
	return filled(text[n-1])
}

// filled cleans a text of the firmware, and drops those that say nothing.
func filled(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return ' '
		}
		return r
	}, s)
	s = strings.Join(strings.Fields(s), " ")
	switch strings.ToLower(s) {
	case "none", "0", "not specified", "default string", "to be filled by o.e.m.", "system serial number", "unknown",
		"system manufacturer", "system product name", "not available", "n/a", "undefined", "no dimm", "o.e.m.", "empty",
		"00000000", "0x00000000":
		return ""
	}
	if len(s) > 128 {
		s = s[:128]
	}
	return s
}

// uuid writes the 16 bytes of a machine's UUID; the first three fields have the
// least byte first. All zero or all ones is none.
func uuid(b []byte) string {
	if !slices.ContainsFunc(b, func(c byte) bool { return c != 0 }) || !slices.ContainsFunc(b, func(c byte) bool { return c != 0xff }) {
		return ""
	}
	return fmt.Sprintf("%08x-%04x-%04x-%s-%s", binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint16(b[4:]),
		binary.LittleEndian.Uint16(b[6:]), hex.EncodeToString(b[8:10]), hex.EncodeToString(b[10:16]))
}

// memoryModule reads a memory device; false: the slot is empty, or the size unknown.
func memoryModule(b []byte, at func(int) string) (muster.DIMM, bool) {
	var d muster.DIMM
	if len(b) < 0x15 {
		return d, false
	}
	size := binary.LittleEndian.Uint16(b[0x0c:])
	switch {
	case size == 0 || size == 0xffff:
		return d, false
	case size == 0x7fff && len(b) >= 0x20: // too large for 16 bits
		d.Size = int64(binary.LittleEndian.Uint32(b[0x1c:])&0x7fffffff) << 20
	case size&0x8000 != 0:
		d.Size = int64(size&0x7fff) << 10
	default:
		d.Size = int64(size) << 20
	}
	if d.Size == 0 {
		return d, false
	}
	d.Slot = at(0x10)
	if bank := at(0x11); d.Slot == "" {
		d.Slot = bank
	}
	d.Kind = memoryKind(b[0x12])
	if len(b) >= 0x1b {
		d.Vendor, d.Serial, d.Part = at(0x17), at(0x18), at(0x1a)
	}
	if len(b) >= 0x17 {
		d.Speed = speed(b, 0x15, 0x54)
	}
	if len(b) >= 0x22 {
		if set := speed(b, 0x20, 0x58); set > 0 {
			d.Speed = set
		}
	}
	return d, true
}

// speed reads a speed that may be too large for 16 bits.
func speed(b []byte, at, extended int) int {
	n := binary.LittleEndian.Uint16(b[at:])
	if n == 0xffff && len(b) >= extended+4 {
		return int(binary.LittleEndian.Uint32(b[extended:]) & 0x7fffffff)
	}
	if n == 0xffff {
		return 0
	}
	return int(n)
}

// memoryKind names the types that servers have.
func memoryKind(n byte) string {
	switch n {
	case 0x07:
		return "RAM"
	case 0x18:
		return "DDR3"
	case 0x1a:
		return "DDR4"
	case 0x1e:
		return "LPDDR4"
	case 0x20:
		return "HBM"
	case 0x21:
		return "HBM2"
	case 0x22:
		return "DDR5"
	case 0x23:
		return "LPDDR5"
	case 0x24:
		return "HBM3"
	}
	return ""
}
