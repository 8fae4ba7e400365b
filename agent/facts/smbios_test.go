package facts

import (
	"bytes"
	"encoding/binary"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
)

// structure writes one structure of the table, with its strings.
func structure(kind byte, size int, set map[int]any, text ...string) []byte {
	b := make([]byte, size)
	b[0], b[1] = kind, byte(size)
	for at, v := range set {
		switch v := v.(type) {
		case int: // one byte
			b[at] = byte(v)
		case uint16:
			binary.LittleEndian.PutUint16(b[at:], v)
		case uint32:
			binary.LittleEndian.PutUint32(b[at:], v)
		case []byte:
			copy(b[at:], v)
		}
	}
	for _, s := range text {
		b = append(b, s+"\x00"...)
	}
	if len(text) == 0 {
		b = append(b, 0)
	}
	return append(b, 0)
}

func server() []byte {
	id := []byte{0x33, 0x22, 0x11, 0x00, 0x55, 0x44, 0x77, 0x66, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff}
	return bytes.Join([][]byte{
		structure(0, 24, map[int]any{5: 2}, "A maker", "2.17.1"),
		structure(1, 27, map[int]any{4: 1, 5: 2, 7: 3, 8: id}, "Maker Inc.", "Server  X1 ", "SN-42"),
		structure(4, 48, nil),
		structure(17, 92, map[int]any{0xc: uint16(0x7fff), 0x1c: uint32(64 << 10), 0x10: 1, 0x11: 2, 0x12: 0x22, 0x15: uint16(5600), 0x17: 3, 0x18: 4, 0x1a: 5, 0x20: uint16(4800)}, "A2", "BANK 0", "Chips", "0001", "PART-1"),
		structure(17, 40, map[int]any{0xc: uint16(16 << 10), 0x10: 1, 0x12: 0x1a, 0x15: uint16(3200)}, "A1"),
		structure(17, 40, map[int]any{0x10: 1}, "A3"),                       // nothing in it
		structure(17, 40, map[int]any{0xc: uint16(0xffff), 0x10: 1}, "A4"),  // unknown
		structure(17, 21, map[int]any{0xc: uint16(0x8200), 0x11: 1}, "OLD"), // kilobytes
		structure(127, 4, nil),
		structure(1, 27, map[int]any{4: 1}, "after the end"),
	}, nil)
}

func TestSMBIOS(t *testing.T) {
	t.Parallel()
	got := parseSMBIOS(server())
	want := smbios{
		maker: "Maker Inc.", product: "Server X1", serial: "SN-42", uuid: "00112233-4455-6677-8899-aabbccddeeff", firmware: "2.17.1",
		dimms: []muster.DIMM{
			{Slot: "A1", Size: 16 << 30, Kind: "DDR4", Speed: 3200},
			{Slot: "A2", Size: 64 << 30, Kind: "DDR5", Speed: 4800, Vendor: "Chips", Serial: "0001", Part: "PART-1"},
			{Slot: "OLD", Size: 512 << 10},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("\n%+v\n%+v", got, want)
	}
	// What is cut off keeps what came before.
	b := server()
	if got = parseSMBIOS(b[:70]); got.maker != "" || got.firmware != "2.17.1" {
		t.Errorf("%+v", got)
	}
	for _, none := range [][]byte{bytes.Repeat([]byte{0}, 16), bytes.Repeat([]byte{0xff}, 16)} {
		if uuid(none) != "" {
			t.Errorf("%x is a UUID", none)
		}
	}
	if filled("To Be Filled By O.E.M.") != "" || filled(" a\x00\x1b b ") != "a b" {
		t.Error("filled")
	}
}

func FuzzSMBIOS(f *testing.F) {
	f.Add(server())
	f.Add([]byte{17, 4, 0, 0, 0, 0})
	if b, err := os.ReadFile("/sys/firmware/dmi/tables/DMI"); err == nil {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s := parseSMBIOS(b)
		for _, d := range s.dimms {
			if d.Size <= 0 || d.Speed < 0 || len(d.Slot) > 128 || strings.ContainsAny(d.Slot+d.Part+s.maker, "\n\x1b\x00") {
				t.Fatalf("%+v", d)
			}
		}
	})
}

func tlv(kind int, v ...byte) []byte {
	return append(binary.BigEndian.AppendUint16(nil, uint16(kind<<9|len(v))), v...)
}

func frame() []byte {
	return bytes.Join([][]byte{
		tlv(1, 4, 0, 1, 2, 3, 4, 5), tlv(2, append([]byte{5}, "swp7"...)...), tlv(3, 0, 120),
		tlv(4, []byte("to node 7\n")...), tlv(5, []byte("leaf-01")...), tlv(127, 0, 0x80, 0xc2, 1, 0x10, 42), tlv(8, 1), tlv(0),
	}, nil)
}

func TestLLDP(t *testing.T) {
	t.Parallel()
	got, ok := parseLLDP(append(frame(), 0, 0, 0)) // filled up to the least size
	want := muster.Neighbour{System: "leaf-01", Chassis: "00:01:02:03:04:05", Port: "swp7", Text: "to node 7", VLAN: 42}
	if !ok || got != want {
		t.Errorf("%+v %v", got, ok)
	}
	for name, b := range map[string][]byte{
		"empty": nil, "cut off": frame()[:12], "no chassis": frame()[9:],
		"too early an end": append(tlv(1, 4, 1), tlv(0)...),
	} {
		if n, ok := parseLLDP(b); ok {
			t.Errorf("%s: %+v", name, n)
		}
	}
	for want, v := range map[string][]byte{"10.0.0.1": {5, 1, 10, 0, 0, 1}, "010203": {4, 1, 2, 3}, "x y": {7, 'x', 0x1b, 'y'}, "": {4}} {
		if got := lldpID(v, 4, 5); got != want {
			t.Errorf("%x: %q", v, got)
		}
	}
}

func FuzzLLDP(f *testing.F) {
	f.Add(frame())
	f.Fuzz(func(t *testing.T, b []byte) {
		n, _ := parseLLDP(b)
		if strings.ContainsAny(n.System+n.Port+n.Text+n.Chassis, "\n\x1b\x00") || n.VLAN > 4095 {
			t.Fatalf("%+v", n)
		}
	})
}
