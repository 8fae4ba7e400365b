package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// ErrStop returned by a handler of events ends the stream without an error.
var ErrStop = errors.New("stop")

// EventOptions say which events to read.
type EventOptions struct {
	Cluster string // ID or name; "" for the whole site
	After   int64  // sequence number of the last event already seen
	Follow  bool   // go on when the past is told
	Newest  int    // of the past, only the last so many; 0: all
	// Patient waits for a server that does not answer even at first: for those
	// whom it answered a moment ago.
	Patient bool
	// Lost, if set, is told when the connection broke and is made again.
	Lost func(error)
}

// Events calls handle for each event, in order, until ctx ends, handle returns
// an error, or (without Follow) the past is told. A broken connection, even by
// a restart of the server, is made again and goes on after the last event.
func (k *Client) Events(ctx context.Context, o EventOptions, handle func(wire.Event) error) error {
	wait := k.retry
	after := o.After
	for {
		seen := false
		err := k.stream(ctx, o, after, func(e wire.Event) error {
			seen = true
			if e.Seq > 0 {
				if e.Seq <= after {
					return nil // told already, before the connection broke
				}
				after = e.Seq
			}
			return handle(e)
		})
		var broken *brokenError
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil && !o.Follow:
			return nil
		case errors.Is(err, ErrStop):
			return nil
		case err == nil, errors.As(err, &broken):
		case muster.CodeOf(err) == muster.EUnavailable && o.Follow && (o.Patient || after > 0 || seen):
			// The server is restarting: one that answered once will be back.
		default:
			return err
		}
		if seen {
			wait = k.retry
		}
		if o.Lost != nil {
			o.Lost(err)
		}
		if wait, err = pause(ctx, wait); err != nil {
			return err
		}
	}
}

// stream reads one connection's events.
func (k *Client) stream(ctx context.Context, o EventOptions, after int64, handle func(wire.Event) error) error {
	segments := []string{"events"}
	if o.Cluster != "" {
		segments = []string{"clusters", o.Cluster, "events"}
	}
	query := url.Values{}
	if !o.Follow {
		query.Set("follow", "0")
	}
	if o.Newest > 0 && after == o.After { // once some was told: all that came since
		query.Set("newest", strconv.Itoa(o.Newest))
	}
	header := http.Header{"Accept": {"text/event-stream"}}
	if after > 0 {
		header.Set("Last-Event-ID", strconv.FormatInt(after, 10))
	}
	resp, err := k.send(ctx, call{method: http.MethodGet, path: path(segments...), query: query, header: header})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return readEvents(resp.Body, handle)
}

// readEvents reads events until handle returns an error or the past is told: an
// event named "end" is the last thing of a finished stream.
func readEvents(r io.Reader, handle func(wire.Event) error) error {
	return readStream(r, func(name, data string) error {
		switch {
		case name == "end":
			return errEnd
		case data == "":
			return nil
		}
		var e wire.Event
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			return &brokenError{err}
		}
		return handle(e)
	})
}
