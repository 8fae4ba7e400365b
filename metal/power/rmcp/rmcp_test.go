package rmcp

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
)

// TestSealedIsNotTouched changes each byte of a sealed packet: none may open.
func TestSealedIsNotTouched(t *testing.T) {
	t.Parallel()
	for _, s := range Suites() {
		k := keys(t, s)
		sealed, err := k.Seal(TypeIPMI, 5, 6, []byte("chassis status"))
		if err != nil {
			t.Fatal(err)
		}
		for i := 4; i < len(sealed); i++ {
			b := bytes.Clone(sealed)
			b[i] ^= 0x10
			p, err := Parse(b)
			if err != nil {
				continue
			}
			if _, err := k.Open(p, p.Session); muster.CodeOf(err) != muster.ECorrupt {
				t.Errorf("suite %d: byte %d changed and it opened: %v", s.ID, i, err)
			}
		}
	}
}

// TestUnsignedIsRefused: who strips the flags gets nothing believed.
func TestUnsignedIsRefused(t *testing.T) {
	t.Parallel()
	answer := Response{Function: Chassis, Command: GetChassisStatus, Data: []byte{0, 0, 0}}.Bytes()
	k := keys(t, Suites()[0])
	for name, b := range map[string][]byte{
		"plain":   Plain(TypeIPMI, answer),
		"plain15": Plain15(answer),
	} {
		p, err := Parse(b)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := k.Open(p, p.Session); err == nil {
			t.Errorf("%s: an unsigned answer was believed", name)
		}
	}
}

func TestSealsDiffer(t *testing.T) {
	t.Parallel()
	k := keys(t, Suites()[0])
	a, _ := k.Seal(TypeIPMI, 1, 1, []byte("same"))
	b, _ := k.Seal(TypeIPMI, 1, 1, []byte("same"))
	if bytes.Equal(a, b) {
		t.Error("the same text sealed twice gave the same bytes")
	}
}

func TestKeysAreNotPrinted(t *testing.T) {
	t.Parallel()
	k := keys(t, Suites()[0])
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if got := fmt.Sprintf(verb, k); !strings.Contains(got, "keys of a session") || len(got) > 40 {
			t.Errorf("%s prints %q", verb, got)
		}
	}
}

func TestMessagesComeBack(t *testing.T) {
	t.Parallel()
	q := Request{Function: Chassis, Sequence: 63, Command: ChassisControl, Data: []byte{1}}
	got, err := ParseRequest(q.Bytes())
	if err != nil || got.Function != q.Function || got.Sequence != q.Sequence || got.Command != q.Command || !bytes.Equal(got.Data, q.Data) {
		t.Errorf("request %+v came back as %+v: %v", q, got, err)
	}
	r := Response{Function: Chassis, Sequence: 63, Command: ChassisControl, Code: CodeNotNow, Data: []byte{9}}
	back, err := ParseResponse(r.Bytes())
	if err != nil || !back.Answers(q) || back.Code != r.Code || !bytes.Equal(back.Data, r.Data) {
		t.Errorf("response %+v came back as %+v: %v", r, back, err)
	}
	broken := r.Bytes()
	broken[7]++
	if _, err := ParseResponse(broken); err == nil {
		t.Error("a response with a wrong checksum was read")
	}
}
