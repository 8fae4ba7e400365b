package journal

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/muster-hpc/muster/wire"
)

// maxMessage is the most bytes of one line that are kept.
const maxMessage = 4 << 10

const cut = " [cut]"

// entry is a line of journalctl --output=json. Each field is text, null (too
// long), numbers (bytes that are not text), or a list of these where a program
// sent the field more than once.
type entry struct {
	Cursor     json.RawMessage `json:"__CURSOR"`
	Time       json.RawMessage `json:"__REALTIME_TIMESTAMP"`
	Message    json.RawMessage `json:"MESSAGE"`
	Priority   json.RawMessage `json:"PRIORITY"`
	SystemUnit json.RawMessage `json:"_SYSTEMD_UNIT"`
	About      json.RawMessage `json:"UNIT"` // the unit that systemd itself speaks of
	Identifier json.RawMessage `json:"SYSLOG_IDENTIFIER"`
}

// Parse reads one line of journalctl --output=json and returns it with the
// cursor to resume after. It returns false for what is not such a line. The
// text comes from any program on the node: it may say anything.
func Parse(b []byte) (wire.JournalLine, string, bool) {
	var e entry
	if json.Unmarshal(b, &e) != nil {
		return wire.JournalLine{}, "", false
	}
	cursor := field(e.Cursor)
	micros, err := strconv.ParseInt(field(e.Time), 10, 64)
	if err != nil || micros < 0 || cursor == "" {
		return wire.JournalLine{}, "", false
	}
	l := wire.JournalLine{
		At:       time.UnixMicro(micros).UTC(),
		Unit:     clip(unit(e), 128),
		Priority: 6,
		Message:  clip(field(e.Message), maxMessage),
	}
	if p, err := strconv.Atoi(field(e.Priority)); err == nil && p >= 0 && p <= 7 {
		l.Priority = p
	}
	if len(e.Message) == 0 || string(e.Message) == "null" {
		l.Message = "[a message that is too long or empty]"
	}
	// A year above 9999 has no JSON form and would spoil the whole report.
	if l.At.Year() > 9999 {
		return wire.JournalLine{}, "", false
	}
	return l, cursor, true
}

func unit(e entry) string {
	u := field(e.SystemUnit)
	if u == "init.scope" || u == "" {
		for _, f := range []json.RawMessage{e.About, e.Identifier} {
			if s := field(f); s != "" {
				return s
			}
		}
	}
	return u
}

// field returns the text of a field in any of its forms; of a list, the first.
func field(raw json.RawMessage) string {
	if len(raw) > 0 && raw[0] == '[' {
		var list []json.RawMessage
		if json.Unmarshal(raw, &list) != nil || len(list) == 0 {
			return ""
		}
		switch first := list[0]; {
		case len(first) > 0 && first[0] == '"':
			raw = first
		case len(first) > 0 && first[0] == '[':
			return octets(first)
		default:
			return octets(raw)
		}
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// octets returns the text of a list of bytes.
func octets(raw json.RawMessage) string {
	var wide []int
	if json.Unmarshal(raw, &wide) != nil {
		return ""
	}
	b := make([]byte, len(wide))
	for i, n := range wide {
		b[i] = byte(n)
	}
	return strings.ToValidUTF8(string(b), "\uFFFD")
}

// clip shortens s to at most n bytes, between characters.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	n -= len(cut)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + cut
}
