package muster

import (
	"bytes"
	"encoding/hex"
	"strings"
)

// maxPowerKey is the length of the key K_G of IPMI 2.0 (13.33), in bytes.
const maxPowerKey = 20

// ParsePowerKey reads the key K_G of an IPMI controller, from which it derives the keys of
// its sessions: text, or hexadecimal digits behind 0x. Zeroes at the end count for nothing,
// as in the controller: a key of zeroes is none, and empty. The error repeats nothing of it.
func ParsePowerKey(s string) ([]byte, error) {
	key := []byte(s)
	if digits, ok := strings.CutPrefix(strings.ToLower(s), "0x"); ok {
		var err error
		if key, err = hex.DecodeString(digits); err != nil {
			return nil, Errorf(EInvalid, "the key K_G is not hexadecimal").Because(ReasonBadValue).
				WithHint("write an even number of hexadecimal digits behind 0x, or the key as text")
		}
	}
	if key = bytes.TrimRight(key, "\x00"); len(key) > maxPowerKey {
		return nil, Errorf(EInvalid, "the key K_G has %d bytes", len(key)).Because(ReasonTooLarge).
			WithHint("a controller's key has at most 20 bytes: 20 characters, or 0x and 40 hexadecimal digits")
	}
	return key, nil
}

// CheckPowerKey returns what is wrong with the key K_G for an address of this kind; an
// empty text is none. It repeats nothing of it.
func (p PowerAddress) CheckPowerKey(key string) []Problem {
	const field = "power_key"
	if key == "" {
		return nil
	}
	c := powerCheck{PowerAddress: p}
	if p.Kind != PowerIPMI {
		c.only(field, true, PowerIPMI)
		for i := range c.problems {
			c.problems[i].Field = field
		}
		return c.problems
	}
	if _, err := ParsePowerKey(key); err != nil {
		problem := Problem{Field: field, Reason: ReasonOf(err), Message: err.Error()}
		if e, ok := err.(*Error); ok {
			problem.Message, problem.Hint = e.Message, e.Hint
		}
		return []Problem{problem}
	}
	return nil
}
