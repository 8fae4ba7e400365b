package rmcp

import "encoding/binary"

// MaxUser is the longest name of an account, MaxPassword the longest password.
const (
	MaxUser     = 16
	MaxPassword = 20
)

// RAKP1 says who wants the session (13.20).
type RAKP1 struct {
	Tag      byte
	SystemID uint32
	Random   [16]byte
	Role     byte
	User     string
}

// Bytes is the payload.
func (m RAKP1) Bytes() []byte {
	b := []byte{m.Tag, 0, 0, 0}
	b = binary.LittleEndian.AppendUint32(b, m.SystemID)
	b = append(b, m.Random[:]...)
	b = append(b, m.Role, 0, 0, byte(len(m.User)))
	return append(b, m.User...)
}

// ParseRAKP1 reads it.
func ParseRAKP1(b []byte) (RAKP1, error) {
	if len(b) < 28 || int(b[27]) > MaxUser || len(b) < 28+int(b[27]) {
		return RAKP1{}, corrupt("a RAKP 1 of %d bytes", len(b))
	}
	m := RAKP1{Tag: b[0], SystemID: binary.LittleEndian.Uint32(b[4:]), Role: b[24], User: string(b[28 : 28+int(b[27])])}
	copy(m.Random[:], b[8:])
	return m, nil
}

// RAKP2 is the controller's number and proof (13.21).
type RAKP2 struct {
	Tag          byte
	Status       Status
	ConsoleID    uint32
	Random, GUID [16]byte
	Code         []byte
}

// Bytes is the payload.
func (m RAKP2) Bytes() []byte {
	b := []byte{m.Tag, byte(m.Status), 0, 0}
	b = binary.LittleEndian.AppendUint32(b, m.ConsoleID)
	if m.Status != StatusDone {
		return b
	}
	b = append(b, m.Random[:]...)
	b = append(b, m.GUID[:]...)
	return append(b, m.Code...)
}

// ParseRAKP2 reads it.
func ParseRAKP2(b []byte) (RAKP2, error) {
	if len(b) < 8 {
		return RAKP2{}, corrupt("a RAKP 2 of %d bytes", len(b))
	}
	m := RAKP2{Tag: b[0], Status: Status(b[1]), ConsoleID: binary.LittleEndian.Uint32(b[4:])}
	if m.Status != StatusDone {
		return m, nil
	}
	if len(b) < 40 {
		return RAKP2{}, corrupt("a RAKP 2 of %d bytes", len(b))
	}
	copy(m.Random[:], b[8:])
	copy(m.GUID[:], b[24:])
	m.Code = b[40:]
	return m, nil
}

// RAKP3 is the console's proof (13.22).
type RAKP3 struct {
	Tag      byte
	Status   Status
	SystemID uint32
	Code     []byte
}

// Bytes is the payload.
func (m RAKP3) Bytes() []byte {
	b := []byte{m.Tag, byte(m.Status), 0, 0}
	b = binary.LittleEndian.AppendUint32(b, m.SystemID)
	return append(b, m.Code...)
}

// ParseRAKP3 reads it.
func ParseRAKP3(b []byte) (RAKP3, error) {
	if len(b) < 8 {
		return RAKP3{}, corrupt("a RAKP 3 of %d bytes", len(b))
	}
	return RAKP3{Tag: b[0], Status: Status(b[1]), SystemID: binary.LittleEndian.Uint32(b[4:]), Code: b[8:]}, nil
}

// RAKP4 ends the exchange (13.23): the session is open.
type RAKP4 struct {
	Tag       byte
	Status    Status
	ConsoleID uint32
	Check     []byte
}

// Bytes is the payload.
func (m RAKP4) Bytes() []byte {
	b := []byte{m.Tag, byte(m.Status), 0, 0}
	b = binary.LittleEndian.AppendUint32(b, m.ConsoleID)
	return append(b, m.Check...)
}

// ParseRAKP4 reads it.
func ParseRAKP4(b []byte) (RAKP4, error) {
	if len(b) < 8 {
		return RAKP4{}, corrupt("a RAKP 4 of %d bytes", len(b))
	}
	return RAKP4{Tag: b[0], Status: Status(b[1]), ConsoleID: binary.LittleEndian.Uint32(b[4:]), Check: b[8:]}, nil
}
