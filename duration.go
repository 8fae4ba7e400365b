package muster

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"time"
)

// Duration is a length of time that JSON has as a number of seconds, fractions allowed:
// 28800, 0.25. Keys of durations end in _seconds.
type Duration time.Duration

// Seconds is the length in seconds.
func (d Duration) Seconds() float64 { return time.Duration(d).Seconds() }

// Milliseconds is the length in whole milliseconds.
func (d Duration) Milliseconds() int64 { return time.Duration(d).Milliseconds() }

// String is the length as Go writes it: 8h0m0s.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalJSON writes the seconds exactly, to the nanosecond.
func (d Duration) MarshalJSON() ([]byte, error) {
	sign, n := "", uint64(d)
	if d < 0 {
		sign, n = "-", -n
	}
	out := append([]byte(sign), strconv.FormatUint(n/1e9, 10)...)
	if rest := n % 1e9; rest > 0 {
		part := strconv.FormatUint(1e9+rest, 10)[1:] // with the zeros in front
		out = append(append(out, '.'), bytes.TrimRight([]byte(part), "0")...)
	}
	return out, nil
}

// UnmarshalJSON reads a number of seconds, to the nearest nanosecond. What is longer than
// 292 years is an error.
func (d *Duration) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	const longest = math.MaxInt64 / 1_000_000_000 // seconds
	var n json.Number
	if len(data) == 0 || data[0] == '"' || json.Unmarshal(data, &n) != nil {
		return errors.New("a duration is a number of seconds")
	}
	if whole, err := strconv.ParseInt(n.String(), 10, 64); err == nil && -longest <= whole && whole <= longest {
		*d = Duration(whole * 1e9)
		return nil
	}
	seconds, err := n.Float64()
	if err != nil || math.Abs(seconds) > longest {
		return errors.New("a duration is at most 292 years")
	}
	whole, part := math.Modf(seconds)
	*d = Duration(int64(whole)*1e9 + int64(math.Round(part*1e9)))
	return nil
}
