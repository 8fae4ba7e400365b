package dhcp

import (
	"net/netip"
	"testing"
)

// BenchmarkExchange is four packets of one machine, without sockets and disk.
func BenchmarkExchange(b *testing.B) {
	r := newRig(b)
	r.Note, r.notes = nil, nil
	r.Server.notes = func(Note) {}
	r.Directory = constant{}
	from := netip.MustParseAddrPort("0.0.0.0:68")
	buf := make([]byte, 0, maxReply)
	first := discover(mac(1), pxe(7)).ToBytes()
	out, _ := r.handle(first, from, 67, r.clock.Now())
	second := ask(mac(1), pxe(7), wants(out.address.String()), chose("10.1.0.1")).ToBytes()
	b.ReportAllocs()
	for b.Loop() {
		for _, p := range [][]byte{first, second} {
			out, ok := r.handle(p, from, 67, r.clock.Now())
			if !ok {
				b.Fatal("no answer")
			}
			buf = out.append(buf[:0], r.Address)
		}
	}
}

// BenchmarkEncode is one reply: it allocates nothing.
func BenchmarkEncode(b *testing.B) {
	r := newRig(b)
	out, _ := r.handle(discover(mac(1), pxe(7)).ToBytes(), netip.MustParseAddrPort("0.0.0.0:68"), 67, r.clock.Now())
	buf := make([]byte, 0, maxReply)
	b.ReportAllocs()
	for b.Loop() {
		buf = out.append(buf[:0], r.Address)
	}
}

func TestEncodingAllocatesNothing(t *testing.T) {
	r := newRig(t)
	out, _ := r.handle(discover(mac(1), pxe(7)).ToBytes(), netip.MustParseAddrPort("0.0.0.0:68"), 67, r.clock.Now())
	buf := make([]byte, 0, maxReply)
	if n := testing.AllocsPerRun(100, func() { buf = out.append(buf[:0], r.Address) }); n != 0 {
		t.Errorf("%v allocations for a reply", n)
	}
}

// TestFrame checks the sums of a frame the way a receiver does.
func TestFrame(t *testing.T) {
	t.Parallel()
	for _, size := range []int{300, 301} {
		f := make([]byte, headers+size)
		for i := range f {
			f[i] = byte(i * 7)
		}
		sealFrame(f, mac(1), mac(2), ip("10.1.0.1"), ip("10.1.0.10"))
		if got := sum(0, f[14:34]); got != 0xffff {
			t.Errorf("IP header's sum is %04x", got)
		}
		pseudo := uint32(sum(0, f[26:34])) + 17 + uint32(8+size)
		if got := sum(pseudo, f[34:]); got != 0xffff {
			t.Errorf("UDP's sum is %04x", got)
		}
		if MAC(f[:6]) != mac(2) || MAC(f[6:12]) != mac(1) {
			t.Error("wrong MACs")
		}
	}
}

type constant struct{}

func (constant) Decide(*Request) Verdict { return Verdict{Standing: Known, Boot: "b1a2"} }

func (constant) Holds(MAC) bool { return false }
