package inventory

import (
	"bytes"
	"encoding/binary"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// decoded is a file in UTF-8 with line feeds, whatever program saved it: a byte order mark
// names UTF-8 or UTF-16, UTF-16 without one is known by its zero bytes, and what is not valid
// UTF-8 is Windows-1252, which is Latin-1 with more signs.
func decoded(data []byte) []byte {
	order := unmarkedUTF16(data)
	switch {
	case order != nil:
		data = fromUTF16(data, order)
	case bytes.HasPrefix(data, []byte("\xff\xfe")):
		data = fromUTF16(data[2:], binary.LittleEndian)
	case bytes.HasPrefix(data, []byte("\xfe\xff")):
		data = fromUTF16(data[2:], binary.BigEndian)
	default:
		data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
		if !utf8.Valid(data) {
			data = fromWindows1252(data)
		}
	}
	data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	return bytes.ReplaceAll(data, []byte("\r"), []byte("\n"))
}

// unmarkedUTF16 is the byte order of a text in UTF-16 that no mark names; nil if it is none.
// Names and addresses of machines are ASCII: nearly every unit has a zero byte, always on the
// same side.
func unmarkedUTF16(data []byte) binary.ByteOrder {
	const most = 4096 // of the beginning say enough
	data = data[:min(len(data), most)]
	units := len(data) / 2
	var zeros [2]int // on the first and on the second side
	for i := range 2 * units {
		if data[i] == 0 {
			zeros[i%2]++
		}
	}
	switch {
	case zeros[0] == 0 && zeros[1] > units/2:
		return binary.LittleEndian
	case zeros[1] == 0 && zeros[0] > units/2:
		return binary.BigEndian
	}
	return nil
}

func fromUTF16(data []byte, order binary.ByteOrder) []byte {
	units := make([]uint16, len(data)/2)
	for i := range units {
		units[i] = order.Uint16(data[2*i:])
	}
	return []byte(string(utf16.Decode(units)))
}

// windows1252 are its signs from 0x80 to 0x9f; below and above it is Latin-1. What it
// leaves open are control characters, as in Latin-1.
const windows1252 = "\u20ac\u0081\u201a\u0192\u201e\u2026\u2020\u2021\u02c6\u2030\u0160\u2039\u0152\u008d\u017d\u008f" +
	"\u0090\u2018\u2019\u201c\u201d\u2022\u2013\u2014\u02dc\u2122\u0161\u203a\u0153\u009d\u017e\u0178"

func fromWindows1252(data []byte) []byte {
	high := []rune(windows1252)
	var b strings.Builder
	b.Grow(len(data) + len(data)/8)
	for _, c := range data {
		if c >= 0x80 && c <= 0x9f {
			b.WriteRune(high[c-0x80])
		} else {
			b.WriteRune(rune(c))
		}
	}
	return []byte(b.String())
}
