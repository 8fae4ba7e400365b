package rmcp

import "fmt"

// Function is a network function: the group of commands.
type Function byte

// Functions. An answer has the next higher, odd number.
const (
	Chassis Function = 0x00
	App     Function = 0x06
)

// Commands.
const (
	// Of Chassis.
	GetChassisStatus byte = 0x01
	ChassisControl   byte = 0x02
	SetBootOptions   byte = 0x08
	GetBootOptions   byte = 0x09
	// Of App.
	GetDeviceID            byte = 0x01
	GetSystemGUID          byte = 0x37
	GetChannelCapabilities byte = 0x38
	SetPrivilege           byte = 0x3b
	CloseSession           byte = 0x3c
	GetCipherSuites        byte = 0x54
)

// Privileges.
const (
	RoleUser          byte = 2
	RoleOperator      byte = 3
	RoleAdministrator byte = 4
)

// Code is a completion code.
type Code byte

// The completion codes that are told apart here.
const (
	CodeDone        Code = 0x00
	CodeNoParameter Code = 0x80 // of boot options: not supported
	CodeBusy        Code = 0xc0
	CodeUnknown     Code = 0xc1
	CodeTimeout     Code = 0xc3
	CodeLength      Code = 0xc7
	CodeField       Code = 0xcc
	CodeNoPrivilege Code = 0xd4
	CodeNotNow      Code = 0xd5
	CodeNoSession   Code = 0x87
	CodeRoleExceeds Code = 0x81
	CodeUnspecified Code = 0xff
)

const (
	systemAddress      = 0x20 // of a controller
	consoleAddress     = 0x81 // of a remote console
	requestOverhead    = 7
	responseOverhead   = 8
	maxRequestSequence = 64
)

// String is the code in words.
func (c Code) String() string {
	switch c {
	case CodeDone:
		return "done"
	case CodeBusy:
		return "the controller is busy"
	case CodeUnknown:
		return "it does not know the command"
	case CodeTimeout:
		return "it timed out"
	case CodeLength, CodeField:
		return "it does not understand the request"
	case CodeNoPrivilege:
		return "the account's privilege does not suffice"
	case CodeNotNow:
		return "not in its present state"
	}
	return fmt.Sprintf("completion code %#02x", byte(c))
}

// Request is one command.
type Request struct {
	Function Function
	Sequence byte // 0 to 63, comes back in the answer
	Command  byte
	Data     []byte
}

// Bytes is the message (13.8).
func (r Request) Bytes() []byte {
	b := []byte{systemAddress, byte(r.Function) << 2}
	b = append(b, checksum(b), consoleAddress, r.Sequence<<2, r.Command)
	b = append(b, r.Data...)
	return append(b, checksum(b[3:]))
}

// ParseRequest reads a message to a controller.
func ParseRequest(b []byte) (Request, error) {
	if len(b) < requestOverhead {
		return Request{}, corrupt("a request of %d bytes", len(b))
	}
	if checksum(b[:2]) != b[2] || checksum(b[3:len(b)-1]) != b[len(b)-1] {
		return Request{}, corrupt("a request with a wrong checksum")
	}
	return Request{Function: Function(b[1] >> 2), Sequence: b[4] >> 2, Command: b[5], Data: b[6 : len(b)-1]}, nil
}

// Response answers a Request.
type Response struct {
	Function Function // of the request
	Sequence byte
	Command  byte
	Code     Code
	Data     []byte
}

// Bytes is the message.
func (r Response) Bytes() []byte {
	b := []byte{consoleAddress, byte(r.Function+1) << 2}
	b = append(b, checksum(b), systemAddress, r.Sequence<<2, r.Command, byte(r.Code))
	b = append(b, r.Data...)
	return append(b, checksum(b[3:]))
}

// ParseResponse reads a message from a controller.
func ParseResponse(b []byte) (Response, error) {
	if len(b) < responseOverhead {
		return Response{}, corrupt("a response of %d bytes", len(b))
	}
	if checksum(b[:2]) != b[2] || checksum(b[3:len(b)-1]) != b[len(b)-1] {
		return Response{}, corrupt("a response with a wrong checksum")
	}
	if b[1]>>2&1 == 0 {
		return Response{}, corrupt("a request where a response belongs")
	}
	return Response{Function: Function(b[1]>>2 - 1), Sequence: b[4] >> 2, Command: b[5], Code: Code(b[6]), Data: b[7 : len(b)-1]}, nil
}

// Answers reports whether the response is that of the request.
func (r Response) Answers(q Request) bool {
	return r.Function == q.Function && r.Command == q.Command && r.Sequence == q.Sequence%maxRequestSequence
}

// checksum makes the sum of the bytes and itself zero.
func checksum(b []byte) byte {
	var sum byte
	for _, v := range b {
		sum += v
	}
	return -sum
}
