package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// LogFilter narrows the lines of journals.
type LogFilter struct {
	Node     string // only this one
	Lines    int    // of the newest; 0: the server's default
	Since    string // 30m, 6h, 2d, or RFC 3339
	Unit     string
	Priority string // name or number: as severe as this
}

func (f LogFilter) query() url.Values {
	query := url.Values{}
	for name, value := range map[string]string{"node": f.Node, "since": f.Since, "unit": f.Unit, "priority": f.Priority} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if f.Lines > 0 {
		query.Set("lines", strconv.Itoa(f.Lines))
	}
	return query
}

// Logs returns the newest lines of the journals of a cluster's nodes.
func (k *Client) Logs(ctx context.Context, ref string, f LogFilter) (wire.Logs, error) {
	var out wire.Logs
	return out, k.get(ctx, path("clusters", ref, "logs"), f.query(), &out)
}

// FollowOptions say how to follow journals.
type FollowOptions struct {
	LogFilter
	// Lost, if set, is told when the connection broke and is made again.
	Lost func(error)
	// Missed, if set, is told how many lines were left out, because they were
	// not read in time.
	Missed func(int64)
}

// again is how many lines are asked for after a connection broke: as many are
// told when more came meanwhile.
const again = 2000

// FollowLogs calls handle for the newest lines and then for each that comes,
// until ctx ends, handle returns an error or the cluster is deleted (then it
// returns nil). A broken connection is made again; no line is told twice.
func (k *Client) FollowLogs(ctx context.Context, ref string, o FollowOptions, handle func(wire.LogLine) error) error {
	r := &logReader{handle: handle, missed: o.Missed}
	wait := k.retry
	for {
		r.old, r.telling = r.told, true
		r.told = map[wire.LogLine]int{}
		began := time.Now()
		err := k.streamLogs(ctx, ref, o.LogFilter, r)
		var broken *brokenError
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil, errors.Is(err, ErrStop):
			return nil
		case errors.As(err, &broken), muster.CodeOf(err) == muster.EUnavailable && r.connected:
		default:
			return err
		}
		if len(r.told) == 0 { // it did not answer: what was told is still to be remembered
			r.told = r.old
		}
		if o.Lost != nil {
			o.Lost(err)
		}
		if time.Since(began) > 10*time.Second {
			wait = k.retry
		}
		if wait, err = pause(ctx, wait); err != nil {
			return err
		}
		o.Lines = again
	}
}

func (k *Client) streamLogs(ctx context.Context, ref string, f LogFilter, r *logReader) error {
	header := http.Header{"Accept": {"text/event-stream"}}
	resp, err := k.send(ctx, call{method: http.MethodGet, path: path("clusters", ref, "logs", "stream"), query: f.query(), header: header})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	r.connected = true
	return readStream(resp.Body, r.event)
}

// logReader reads streams of lines, one after the other.
type logReader struct {
	handle    func(wire.LogLine) error
	missed    func(int64)
	connected bool // once at least
	telling   bool // what was there before is being told
	// told are the lines of this connection, old those of the last: a new
	// connection begins with some of them.
	told, old map[wire.LogLine]int
}

// maxTold bounds what is remembered of a connection.
const maxTold = 3 * again

func (r *logReader) line(l wire.LogLine) error {
	key := l
	key.At = l.At.UTC().Round(0) // as a key, a time is its zone too
	if len(r.told) > maxTold {
		r.told = map[wire.LogLine]int{}
	}
	r.told[key]++
	if r.telling && r.old[key] > 0 {
		r.old[key]--
		return nil
	}
	return r.handle(l)
}

// event files one event of a stream.
func (r *logReader) event(name, data string) error {
	switch name {
	case "end":
		return errEnd
	case "now":
		r.telling = false
	case "lost":
		var lost struct {
			Lost int64 `json:"lost"`
		}
		if json.Unmarshal([]byte(data), &lost) == nil && r.missed != nil {
			r.missed(lost.Lost)
		}
	case "":
		if data == "" {
			return nil
		}
		var l wire.LogLine
		if err := json.Unmarshal([]byte(data), &l); err != nil {
			return &brokenError{err}
		}
		return r.line(l)
	}
	return nil
}
