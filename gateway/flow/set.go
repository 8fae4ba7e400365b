package flow

import (
	"encoding/binary"
	"net/netip"

	"github.com/google/nftables"
)

func (k *Kernel) nodes() *nftables.Set   { return k.set("nodes", true, true) }
func (k *Kernel) sources() *nftables.Set { return k.set("sources", true, false) }
func (k *Kernel) marks() *nftables.Set   { return k.set("marks", true, false) }
func (k *Kernel) back() *nftables.Set    { return k.set("back", false, false) }
func (k *Kernel) ended() *nftables.Set   { return k.set("ended", false, true) }

// set is one that the rules declare.
func (k *Kernel) set(name string, pairs, timeout bool) *nftables.Set {
	return &nftables.Set{Table: &nftables.Table{Name: k.cfg.Table, Family: nftables.TableFamilyIPv4}, Name: name, IsMap: pairs, HasTimeout: timeout}
}

// Parts of keys are as long as registers are wide: 4 bytes.

func ip(a netip.Addr) []byte {
	b := a.As4()
	return b[:]
}

func address(a netip.AddrPort) []byte {
	return append(binary.BigEndian.AppendUint16(ip(a.Addr()), a.Port()), 0, 0)
}

func native32(v uint32) []byte { return binary.NativeEndian.AppendUint32(nil, v) }
