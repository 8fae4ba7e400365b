package tftp

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/muster-hpc/muster"
)

// Operation codes (RFC 1350, RFC 2347).
const (
	opRead  = 1
	opData  = 3
	opAck   = 4
	opError = 5
	opOACK  = 6
)

// request is what a client asked for. Options that it did not name are zero.
type request struct {
	name    string
	block   int  // bytes in a packet (RFC 2348)
	window  int  // packets before it acknowledges (RFC 7440)
	timeout int  // seconds before a packet is sent again (RFC 2349)
	size    bool // wants to know how long the file is (RFC 2349)
}

// options says whether any was named, which is answered with an OACK.
func (r request) options() bool { return r.block > 0 || r.window > 0 || r.timeout > 0 || r.size }

// maxRequest is as long as a request may be (RFC 2347).
const maxRequest = 512

// parseRequest reads a read request. An option that is unknown, or whose value is
// outside of what its RFC allows, is as if it were not there.
func parseRequest(b []byte) (request, error) {
	var r request
	if len(b) < 4 || len(b) > maxRequest || b[0] != 0 {
		return r, muster.Errorf(muster.EInvalid, "not a TFTP request")
	}
	if b[1] != opRead {
		return r, muster.Errorf(muster.EForbidden, "only reading is possible")
	}
	rest := b[2:]
	next := func() (string, bool) {
		word, after, ok := bytes.Cut(rest, []byte{0})
		rest = after
		return string(word), ok
	}
	name, ok := next()
	// Some ROMs read the name of DHCP beyond its end: the mark that ends the options
	// follows it there, and zeroes that fill the packet.
	name = strings.TrimRight(name, "\xff")
	mode, ok2 := next()
	for ok2 && mode == "" {
		mode, ok2 = next()
	}
	if !ok || !ok2 || name == "" {
		return r, muster.Errorf(muster.EInvalid, "not a TFTP request")
	}
	if !strings.EqualFold(mode, "octet") {
		return r, muster.Errorf(muster.EInvalid, "only mode octet is possible").WithHint("tftp's command for it is: binary")
	}
	r.name = strings.TrimLeft(strings.ReplaceAll(name, `\`, "/"), "/")
	for {
		key, ok := next()
		value, ok2 := next()
		if !ok || !ok2 {
			return r, nil
		}
		n, err := strconv.Atoi(value)
		if err != nil {
			continue
		}
		switch strings.ToLower(key) {
		case "blksize":
			if n >= 8 && n <= 65464 {
				r.block = n
			}
		case "windowsize":
			if n >= 1 && n <= 65535 {
				r.window = n
			}
		case "timeout":
			if n >= 1 && n <= 255 {
				r.timeout = n
			}
		case "tsize":
			r.size = true
		}
	}
}

// appendOACK says which options are granted.
func (r request) appendOACK(b []byte, size int) []byte {
	b = append(b, 0, opOACK)
	add := func(key string, n int) {
		b = append(append(b, key...), 0)
		b = append(strconv.AppendInt(b, int64(n), 10), 0)
	}
	if r.block > 0 {
		add("blksize", r.block)
	}
	if r.window > 0 {
		add("windowsize", r.window)
	}
	if r.timeout > 0 {
		add("timeout", r.timeout)
	}
	if r.size {
		add("tsize", size)
	}
	return b
}

// Error codes (RFC 1350).
const (
	codeOther    = 0
	codeNotFound = 1
)

func appendError(b []byte, code byte, text string) []byte {
	b = append(b, 0, opError, 0, code)
	return append(append(b, text...), 0)
}
