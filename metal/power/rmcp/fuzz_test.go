package rmcp

import (
	"bytes"
	"testing"
)

func keys(t testing.TB, s Suite) Keys {
	t.Helper()
	return Exchange{Suite: s, ConsoleID: 1, SystemID: 2, Role: 0x13, User: "u"}.Keys(nil, []byte("secret"))
}

// FuzzParse reads any bytes as every kind of packet and message: nothing may
// crash, and what was never signed must not open.
func FuzzParse(f *testing.F) {
	f.Add(Plain(TypeOpenRequest, OpenRequest{ConsoleID: 7, Suite: Suites()[0]}.Bytes()))
	f.Add(Plain(TypeOpenReply, OpenReply{ConsoleID: 7, SystemID: 8, Suite: Suites()[1]}.Bytes()))
	f.Add(Plain(TypeRAKP1, RAKP1{User: "admin"}.Bytes()))
	f.Add(Plain(TypeRAKP2, RAKP2{Code: make([]byte, 20)}.Bytes()))
	f.Add(Plain(TypeRAKP3, RAKP3{Code: make([]byte, 20)}.Bytes()))
	f.Add(Plain(TypeRAKP4, RAKP4{Check: make([]byte, 12)}.Bytes()))
	f.Add(Plain15(Request{Function: App, Command: GetChannelCapabilities, Data: []byte{0x8e, 4}}.Bytes()))
	for _, s := range Suites() {
		b, err := keys(f, s).Seal(TypeIPMI, 1, 1, Response{Function: Chassis, Command: GetChassisStatus, Data: []byte{1, 0, 0}}.Bytes())
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := Parse(b)
		if err != nil {
			return
		}
		_, _ = ParseOpenRequest(p.Payload)
		_, _ = ParseOpenReply(p.Payload)
		_, _ = ParseRAKP1(p.Payload)
		_, _ = ParseRAKP2(p.Payload)
		_, _ = ParseRAKP3(p.Payload)
		_, _ = ParseRAKP4(p.Payload)
		_, _ = ParseRequest(p.Payload)
		_, _ = ParseResponse(p.Payload)
		other := Exchange{Suite: Suites()[0], User: "other"}.Keys(nil, []byte("unknown"))
		if _, err := other.Open(p, p.Session); err == nil {
			t.Fatal("a packet opened with keys that never sealed it")
		}
	})
}

// FuzzUnlock decrypts any bytes, as a controller that knows the password but is
// broken may send them.
func FuzzUnlock(f *testing.F) {
	f.Add([]byte{})
	f.Add(bytes.Repeat([]byte{1}, 32))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, s := range Suites() {
			k := keys(t, s)
			_, _ = k.unlock(b)
			if len(b) > 700 {
				continue
			}
			sealed, err := k.Seal(TypeIPMI, 9, 3, b)
			if err != nil {
				t.Fatal(err)
			}
			p, err := Parse(sealed)
			if err != nil {
				t.Fatal(err)
			}
			got, err := k.Open(p, 9)
			if err != nil || !bytes.Equal(got, b) {
				t.Fatalf("sealed %x, opened %x: %v", b, got, err)
			}
		}
	})
}
