package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// ConsoleProtocol is what a connection is upgraded to for a console. From then
// on the server sends what the machine prints, as it is; the client sends
// frames.
const ConsoleProtocol = "muster-console"

// Kinds of console frames.
const (
	ConsoleInput = 'i' // what was typed
	ConsoleSize  = 's' // columns and rows, two bytes each
)

// MaxConsoleFrame is how many bytes a frame carries at most.
const MaxConsoleFrame = 4096

// WriteConsoleFrame writes one frame: its kind, the length in two bytes, and
// as much. Longer input is cut into frames.
func WriteConsoleFrame(w io.Writer, kind byte, data []byte) error {
	for first := true; first || len(data) > 0; first = false {
		part := data[:min(len(data), MaxConsoleFrame)]
		data = data[len(part):]
		frame := append([]byte{kind, 0, 0}, part...)
		binary.BigEndian.PutUint16(frame[1:], uint16(len(part)))
		if _, err := w.Write(frame); err != nil {
			return err
		}
	}
	return nil
}

// WriteConsoleSize tells the size of the user's terminal.
func WriteConsoleSize(w io.Writer, columns, rows int) error {
	b := binary.BigEndian.AppendUint16(nil, uint16(max(0, min(columns, 0xffff))))
	return WriteConsoleFrame(w, ConsoleSize, binary.BigEndian.AppendUint16(b, uint16(max(0, min(rows, 0xffff)))))
}

// ReadConsoleFrame reads one frame. io.EOF means that there is none any more.
func ReadConsoleFrame(r io.Reader) (kind byte, data []byte, err error) {
	var head [3]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	n := int(binary.BigEndian.Uint16(head[1:]))
	if n > MaxConsoleFrame {
		return 0, nil, fmt.Errorf("a console frame of %d bytes", n)
	}
	data = make([]byte, n)
	if _, err := io.ReadFull(r, data); err != nil {
		return 0, nil, errors.Join(io.ErrUnexpectedEOF, err)
	}
	if head[0] == ConsoleSize && n != 4 {
		return 0, nil, errors.New("a console size has four bytes")
	}
	return head[0], data, nil
}

// ConsoleColumnsRows reads the data of a ConsoleSize frame.
func ConsoleColumnsRows(data []byte) (columns, rows int) {
	if len(data) != 4 {
		return 0, 0
	}
	return int(binary.BigEndian.Uint16(data)), int(binary.BigEndian.Uint16(data[2:]))
}
