package sleep

import (
	"bytes"
	"net"
	"testing"
)

func TestMagic(t *testing.T) {
	t.Parallel()
	mac := net.HardwareAddr{0x52, 1, 2, 3, 4, 0}
	other := net.HardwareAddr{0x52, 1, 2, 3, 5, 0}
	from := net.HardwareAddr{0x02, 0, 0, 0, 0, 1}
	whole := Frame(from, mac)
	if len(whole) != 14+6+16*6 {
		t.Fatalf("%d bytes", len(whole))
	}
	to := func(dst net.HardwareAddr) []byte { return append(append([]byte{}, dst...), whole[6:]...) }
	// As UDP carries it: something before, something behind.
	udp := append(append(bytes.Repeat([]byte{0xff}, 12), 8, 0), bytes.Repeat([]byte{0x45}, 28)...)
	udp = append(append(udp, pattern(mac)...), 1, 2, 3, 4, 5, 6)
	for name, c := range map[string]struct {
		frame []byte
		want  bool
	}{
		"to all": {whole, true}, "to it": {to(mac), true}, "to another": {to(other), false},
		"to a group": {to(net.HardwareAddr{1, 0, 0x5e, 0, 0, 1}), true}, "in UDP, with a password": {udp, true},
		"of another": {Frame(from, other), false}, "cut short": {whole[:len(whole)-1], false},
		"fifteen times": {append(append(append([]byte{}, whole[:14]...), pattern(mac)[:6+15*6]...), 0, 0, 0, 0, 0, 0), false},
		"nothing":       {nil, false}, "a header only": {whole[:14], false},
	} {
		if got := Magic(c.frame, mac); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if Magic(whole, nil) {
		t.Error("a card without an address wakes")
	}
}

// What wakes has the whole pattern in it, and with the pattern of this card put into
// any frame to all it wakes.
func FuzzMagic(f *testing.F) {
	mac := net.HardwareAddr{0x52, 1, 2, 3, 4, 0}
	f.Add(Frame(mac, mac), 3)
	f.Add([]byte{}, 0)
	f.Fuzz(func(t *testing.T, frame []byte, at int) {
		if Magic(frame, mac) && !bytes.Contains(frame, pattern(mac)) {
			t.Fatalf("woken by %x", frame)
		}
		if at < 0 || at > len(frame) {
			return
		}
		head := append(bytes.Repeat([]byte{0xff}, 12), 8, 0)
		made := append(append(append(head, frame[:at]...), pattern(mac)...), frame[at:]...)
		if !Magic(made, mac) {
			t.Fatalf("not woken by %x", made)
		}
	})
}
