package sleep

import (
	"bytes"
	"net"
)

// EtherType is what frames with a magic packet bear that is in no other packet.
const EtherType = 0x0842

// header is the length of an Ethernet header.
const header = 14

// Magic reports whether a frame wakes the machine with this address: it is for it or
// for all, and holds, anywhere, six bytes of ones and the address sixteen times
// (AMD publication 20213).
func Magic(frame []byte, mac net.HardwareAddr) bool {
	if len(mac) != 6 || len(frame) < header {
		return false
	}
	group := frame[0]&1 == 1
	if !group && !bytes.Equal(frame[:6], mac) {
		return false
	}
	return bytes.Contains(frame[header:], pattern(mac))
}

// Frame is the frame that wakes a machine: from an address to all.
func Frame(from, mac net.HardwareAddr) []byte {
	frame := bytes.Repeat([]byte{0xff}, 6)
	frame = append(frame, from...)
	frame = append(frame, EtherType>>8, EtherType&0xff)
	return append(frame, pattern(mac)...)
}

func pattern(mac net.HardwareAddr) []byte {
	return append(bytes.Repeat([]byte{0xff}, 6), bytes.Repeat(mac, 16)...)
}
