package client

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// brokenError is a stream that ended before its time.
type brokenError struct{ err error }

func (e *brokenError) Error() string { return fmt.Sprintf("the event stream broke off: %v", e.err) }
func (e *brokenError) Unwrap() error { return e.err }

// errEnd is returned by who handles events at the proper end of their stream.
var errEnd = errors.New("end of the stream")

// readStream parses server-sent events and calls handle with each. A comment is
// a sign of life, and an event without name and data says nothing. The stream
// ends when handle returns an error; errEnd is its proper end, and nil here.
func readStream(r io.Reader, handle func(name, data string) error) error {
	scanner := bufio.NewScanner(r)
	scanner.Buffer(make([]byte, 4096), 1<<20)
	name, data, more := "", strings.Builder{}, false
	for scanner.Scan() {
		line := scanner.Text()
		if line == "" {
			if err := handle(name, data.String()); err != nil {
				if errors.Is(err, errEnd) {
					return nil
				}
				return err
			}
			name, more = "", false
			data.Reset()
			continue
		}
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "event":
			name = value
		case "data":
			if more {
				data.WriteByte('\n')
			}
			data.WriteString(value)
			more = true
		}
	}
	err := scanner.Err()
	if err == nil {
		err = io.ErrUnexpectedEOF
	}
	return &brokenError{err}
}

// pause waits before a broken connection is made again, and reports how long the
// next wait is.
func pause(ctx context.Context, wait time.Duration) (next time.Duration, err error) {
	select {
	case <-ctx.Done():
		return wait, ctx.Err()
	case <-time.After(wait):
	}
	return min(wait*2, 5*time.Second), nil
}
