package muster

import (
	"net"
	"testing"
)

func TestParseMAC(t *testing.T) {
	t.Parallel()
	const ethernet, guid = "52:54:00:12:34:56", "00:02:c9:03:00:0a:1b:2c"
	for text, want := range map[string]string{
		ethernet: ethernet, "52-54-00-12-34-56": ethernet, "5254.0012.3456": ethernet, " 52:54:00:12:34:56 ": ethernet, "52:54:00:AA:BB:CC": "52:54:00:aa:bb:cc",
		guid: guid, "00-02-C9-03-00-0A-1B-2C": guid, "0x0002c903000a1b2c": guid, "0X0002C903000A1B2C": guid, "0002c903000a1b2c": guid,
		"0002:c903:000a:1b2c": guid, "0002.c903.000a.1b2c": guid,
		"80:00:00:48:fe:80:00:00:00:00:00:00:00:02:c9:03:00:0a:1b:2c": guid, "a0:00:02:20:fe:80:00:00:00:00:00:00:00:02:c9:03:00:0a:1b:2c": guid,
	} {
		got, err := ParseMAC(text)
		if err != nil || got != want || IsGUID(got) != (want == guid) {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	for _, text := range []string{
		"", "x", "01:00:5e:00:00:01", "00:00:00:00:00:00", "00:00:00:00:00:00:00:00", "0x0002c903000a1b2", "0x0002c903000a1b2c00", "0002:c903:000a:1b2",
		"00:2c:903:000a:1b2c", "0002:c903:000a", "80:00:00:48:fe:80:00:00:00:00:00:00:00:02:c9:03:00:0a:1b", "80:00:00:48:fe:80:00:00:00:00:00:00:00:00:00:00:00:00:00:00",
	} {
		if got, err := ParseMAC(text); ReasonOf(err) != ReasonBadAddress {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}

func FuzzParseMAC(f *testing.F) {
	f.Add("0x0002c903000a1b2c")
	f.Add("80:00:00:48:fe:80:00:00:00:00:00:00:00:02:c9:03:00:0a:1b:2c")
	f.Add("52-54-00-12-34-56")
	f.Fuzz(func(t *testing.T, s string) {
		mac, err := ParseMAC(s)
		if err != nil {
			return
		}
		again, err := ParseMAC(mac)
		if b, wrong := net.ParseMAC(mac); err != nil || again != mac || wrong != nil || IsGUID(mac) != (len(b) == 8) {
			t.Errorf("%q is written %q, and that %q, %v", s, mac, again, err)
		}
	})
}

// A machine boots from Ethernet, and has InfiniBand for messages.
func TestInfiniBandIsForMessages(t *testing.T) {
	t.Parallel()
	ib := RegisteredNIC{MAC: "00:02:c9:03:00:0a:1b:2c", Use: UseMessage}
	r := Registration{ID: "m1", Power: PowerAddress{Kind: PowerWOL}, NICs: []RegisteredNIC{{MAC: "52:54:00:12:34:56", Use: UseManagement}, ib}}
	if list := r.Check(); len(list) > 0 {
		t.Errorf("%+v", list)
	}
	ib.Use = UseManagement
	r.NICs = []RegisteredNIC{ib}
	if list := r.Check(); len(list) != 1 || list[0].Field != "nics[0].use" || list[0].Reason != ReasonContradiction {
		t.Errorf("%+v", list)
	}
}
