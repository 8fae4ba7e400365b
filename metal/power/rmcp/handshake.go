package rmcp

import (
	"encoding/binary"
	"fmt"
)

// Status is the answer to a step of opening a session (13.24).
type Status byte

// The statuses that are told apart here.
const (
	StatusDone        Status = 0x00
	StatusNoResources Status = 0x01 // the table of sessions is full
	StatusBadSession  Status = 0x02
	StatusBadRole     Status = 0x09
	StatusNoRole      Status = 0x0a // nobody may have that role now
	StatusBadName     Status = 0x0d
	StatusBadCode     Status = 0x0f // integrity check: the password is wrong
	StatusNoSuite     Status = 0x11
	StatusBadLength   Status = 0x12 // illegal or unrecognised parameter
)

// String is the status in words.
func (s Status) String() string {
	switch s {
	case StatusDone:
		return "done"
	case StatusNoResources:
		return "no session is free"
	case StatusBadSession:
		return "no such session"
	case 0x04, 0x05, 0x10, StatusNoSuite:
		return "it speaks none of the cipher suites offered"
	case StatusBadRole, StatusNoRole:
		return "the account may not have that privilege"
	case StatusBadName:
		return "no such account"
	case StatusBadCode:
		return "the password is wrong"
	case StatusBadLength:
		return "illegal parameter"
	}
	return fmt.Sprintf("status %#02x", byte(s))
}

// OpenRequest asks for a session (13.17).
type OpenRequest struct {
	Tag, Role byte
	ConsoleID uint32
	Suite     Suite
}

// Bytes is the payload.
func (m OpenRequest) Bytes() []byte {
	b := []byte{m.Tag, m.Role, 0, 0}
	b = binary.LittleEndian.AppendUint32(b, m.ConsoleID)
	return appendAlgorithms(b, m.Suite)
}

// ParseOpenRequest reads it. A suite not spoken here has the ID 0.
func ParseOpenRequest(b []byte) (OpenRequest, error) {
	if len(b) < 32 {
		return OpenRequest{}, corrupt("an open request of %d bytes", len(b))
	}
	suite, _ := SuiteOf(b[12], b[20], b[28])
	return OpenRequest{Tag: b[0], Role: b[1] & 0x0f, ConsoleID: binary.LittleEndian.Uint32(b[4:]), Suite: suite}, nil
}

// OpenReply answers it (13.18). All after ConsoleID is absent when refused.
type OpenReply struct {
	Tag       byte
	Status    Status
	Role      byte
	ConsoleID uint32
	SystemID  uint32
	Suite     Suite
}

// Bytes is the payload.
func (m OpenReply) Bytes() []byte {
	b := []byte{m.Tag, byte(m.Status), m.Role, 0}
	b = binary.LittleEndian.AppendUint32(b, m.ConsoleID)
	if m.Status != StatusDone {
		return b
	}
	b = binary.LittleEndian.AppendUint32(b, m.SystemID)
	return appendAlgorithms(b, m.Suite)
}

// ParseOpenReply reads it.
func ParseOpenReply(b []byte) (OpenReply, error) {
	if len(b) < 2 {
		return OpenReply{}, corrupt("an open reply of %d bytes", len(b))
	}
	m := OpenReply{Tag: b[0], Status: Status(b[1])}
	if len(b) >= 8 {
		m.Role, m.ConsoleID = b[2], binary.LittleEndian.Uint32(b[4:])
	}
	if m.Status != StatusDone {
		return m, nil
	}
	if len(b) < 36 {
		return OpenReply{}, corrupt("an open reply of %d bytes", len(b))
	}
	m.SystemID = binary.LittleEndian.Uint32(b[8:])
	m.Suite, _ = SuiteOf(b[16], b[24], b[32])
	return m, nil
}

func appendAlgorithms(b []byte, s Suite) []byte {
	for kind, alg := range []byte{s.Authentication, s.Integrity, s.Confidentiality} {
		b = append(b, byte(kind), 0, 0, 8, alg, 0, 0, 0)
	}
	return b
}
