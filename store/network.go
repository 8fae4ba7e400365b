package store

import (
	"database/sql"
	"net/netip"

	"github.com/muster-hpc/muster"
)

// lastNetwork is the last /20 of 10.128.0.0/9. Number 0 is not used: it means
// that a cluster has no network yet.
const lastNetwork = 1<<11 - 1

// Subnet is the message network of a number that FreeSubnet gave: the /20 of
// that number within 10.128.0.0/9.
func Subnet(index int) netip.Prefix {
	n := uint32(10)<<24 | 128<<16 + uint32(index)<<12
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}), 20)
}

// FreeSubnet returns the smallest network number that no living cluster has,
// and its subnet. It is taken by putting a cluster with that NetworkIndex in
// the same transaction. ENoCapacity when all are in use.
func (tx *Tx) FreeSubnet() (index int, p netip.Prefix, err error) {
	index = 1
	err = tx.s.each(func(r *sql.Rows) error {
		var used int
		err := r.Scan(&used)
		if used == index {
			index++
		}
		return err
	}, `SELECT network_index FROM clusters WHERE phase <> 'deleted' AND network_index IS NOT NULL ORDER BY network_index`)
	if err != nil {
		return 0, netip.Prefix{}, err
	}
	if index > lastNetwork {
		return 0, netip.Prefix{}, muster.Errorf(muster.ENoCapacity, "all %d networks are in use", lastNetwork).Because(muster.ReasonNoNetwork).
			WithHint("delete clusters that nobody needs")
	}
	return index, Subnet(index), nil
}
