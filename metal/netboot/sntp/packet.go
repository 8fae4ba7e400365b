package sntp

import (
	"encoding/binary"
	"errors"
	"time"
)

// packetSize is that of a packet without extensions and without a signature: RFC 5905,
// section 7.3.
const packetSize = 48

// Modes of a packet.
const (
	modeClient = 3
	modeServer = 4
)

// epoch is where times begin, in seconds before those of Unix: the year 1900.
const epoch = 2208988800

var errNoQuestion = errors.New("not a question of an NTP client")

// question is what counts of a client's packet.
type question struct {
	version  byte
	poll     byte
	transmit [8]byte // returned as it came
}

// parse reads a client's packet. What follows the first 48 bytes is not looked at.
func parse(b []byte) (question, error) {
	if len(b) < packetSize || b[0]&7 != modeClient {
		return question{}, errNoQuestion
	}
	q := question{version: b[0] >> 3 & 7, poll: b[2]}
	if q.version < 3 || q.version > 4 {
		return question{}, errNoQuestion
	}
	copy(q.transmit[:], b[40:48])
	return q, nil
}

// answer is the packet that answers a question.
func answer(q question, stratum byte, received, sent time.Time) []byte {
	b := make([]byte, packetSize)
	b[0] = q.version<<3 | modeServer
	b[1], b[2] = stratum, q.poll
	b[3] = 0xec // a precision of 2^-20 seconds
	// The own clock is taken to be off by a millisecond at most, in 1/65536 seconds.
	binary.BigEndian.PutUint32(b[8:], 65536/1000)
	copy(b[12:16], "LOCL")
	binary.BigEndian.PutUint64(b[16:], timestamp(received))
	copy(b[24:32], q.transmit[:])
	binary.BigEndian.PutUint64(b[32:], timestamp(received))
	binary.BigEndian.PutUint64(b[40:], timestamp(sent))
	return b
}

// timestamp is a time in seconds since 1900, with 32 bits behind the point. It begins anew
// in 2036; clients know.
func timestamp(t time.Time) uint64 {
	return uint64(uint32(t.Unix()+epoch))<<32 | uint64(t.Nanosecond())<<32/1e9
}
