package httpboot

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// slice is how much a client must take in one Stall.
const slice = 1 << 20

// errRange is a range that is not in the file.
const errRange = -1

// parseRange reads a header "Range" of one range in bytes. Several ranges, other
// units and what is not understood are answered with the whole (RFC 9110 allows
// it): ok is false. from is errRange if the range is understood and not in the file.
func parseRange(header string, size int64) (from, length int64, ok bool) {
	spec, found := strings.CutPrefix(header, "bytes=")
	first, last, dash := strings.Cut(spec, "-")
	if !found || !dash || strings.Contains(spec, ",") {
		return 0, 0, false
	}
	a, errA := strconv.ParseUint(first, 10, 62)
	b, errB := strconv.ParseUint(last, 10, 62)
	switch {
	case first == "" && errB == nil: // the last b bytes
		n := min(int64(b), size)
		if n == 0 {
			return errRange, 0, true
		}
		return size - n, n, true
	case errA != nil || last != "" && (errB != nil || b < a):
		return 0, 0, false
	case int64(a) >= size:
		return errRange, 0, true
	case last == "":
		return int64(a), size - int64(a), true
	}
	return int64(a), min(int64(b), size-1) - int64(a) + 1, true
}

// send answers with the content, or the part of it that was asked for. Files go
// from the kernel's cache to the network without passing through this process. sent is how
// many bytes went.
func send(w http.ResponseWriter, r *http.Request, c *content, stall time.Duration) (sent int64, err error) {
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Accept-Ranges", "bytes")
	from, length, status := int64(0), c.size, http.StatusOK
	if a, n, ok := parseRange(r.Header.Get("Range"), c.size); ok {
		if a == errRange {
			h.Set("Content-Range", "bytes */"+strconv.FormatInt(c.size, 10))
			w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
			return 0, nil
		}
		from, length, status = a, n, http.StatusPartialContent
		h.Set("Content-Range", "bytes "+strconv.FormatInt(a, 10)+"-"+strconv.FormatInt(a+n-1, 10)+"/"+strconv.FormatInt(c.size, 10))
	}
	h.Set("Content-Length", strconv.FormatInt(length, 10))
	w.WriteHeader(status)
	if r.Method == http.MethodHead {
		return 0, nil
	}
	defer cork(r)()
	deadline := http.NewResponseController(w)
	for _, p := range c.parts {
		begin, end := max(from, p.at), min(from+length, p.at+p.size)
		if begin >= end {
			continue
		}
		if _, err := p.file.Seek(begin-p.at, io.SeekStart); err != nil {
			return sent, err
		}
		for begin < end {
			if err := deadline.SetWriteDeadline(time.Now().Add(stall)); err != nil {
				return sent, err
			}
			n, err := io.CopyN(w, p.file, min(slice, end-begin))
			sent += n
			if err != nil {
				return sent, err
			}
			begin += n
		}
	}
	return sent, nil
}

// memory is bytes as content.
func memory(b []byte) *content {
	c := &content{}
	c.add(bytes.NewReader(b), int64(len(b)))
	return c
}
