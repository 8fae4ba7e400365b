package gateway

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"
)

func TestWhoFailsAgainAndAgainIsKeptOut(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	p := newPenalties[netip.Addr](func() time.Time { return now })
	bad, good := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	for range freeFailures - 1 {
		p.failed(bad)
	}
	if p.kept(bad) {
		t.Error("kept out too soon")
	}
	for _, wait := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 32 * time.Second, longestPenalty, longestPenalty} {
		p.failed(bad)
		now = now.Add(wait - time.Millisecond)
		if !p.kept(bad) || p.kept(good) {
			t.Errorf("%v: kept %v, another %v", wait, p.kept(bad), p.kept(good))
		}
		now = now.Add(time.Millisecond)
		if p.kept(bad) {
			t.Errorf("%v: kept longer", wait)
		}
	}
	now = now.Add(forgiven + time.Second)
	if p.failed(bad); p.kept(bad) {
		t.Error("not forgiven")
	}
	for range freeFailures {
		p.failed(good)
	}
	if p.passed(good); p.kept(good) {
		t.Error("who logged in is kept out")
	}
}

// However many strangers there are, no more than a bound of them are remembered.
func TestStrangersFillNoMemory(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	p := newPenalties[netip.Addr](func() time.Time { return now })
	for i := range mostPenalties + 100 {
		var b [4]byte
		binary.BigEndian.PutUint32(b[:], uint32(i))
		p.failed(netip.AddrFrom4(b))
	}
	if len(p.of) > mostPenalties {
		t.Errorf("%d are remembered", len(p.of))
	}
}
