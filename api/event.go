package api

import (
	"cmp"
	"context"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/replyjson"
	"github.com/muster-hpc/muster/wire"
)

// EventsInput are the parameters of every stream of events.
type EventsInput struct {
	LastEventID string `header:"Last-Event-ID" maxLength:"20" doc:"Sequence number of the last event already seen"`
	Follow      string `query:"follow" enum:"0,1,false,true," doc:"0 ends the stream when the past is told"`
	Newest      int    `query:"newest" minimum:"0" maximum:"100000" doc:"Of the past, only the last so many; 0 means all"`
	After       string `query:"after" maxLength:"20" doc:"As Last-Event-ID"`
	Limit       int    `query:"limit" minimum:"0" maximum:"100000" doc:"End after so many; 0 means as many as there are"`
}

type clusterEventsInput struct {
	ClusterRef
	EventsInput
}

func (a *API) eventRoutes() {
	schema := a.huma.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[wire.Event](), true, "Event")
	responses := func() map[string]*huma.Response {
		return map[string]*huma.Response{"200": {
			Description: "Server-sent events: each has an Event as its data and, if it is in the audit, its sequence number as ID",
			Content:     map[string]*huma.MediaType{"text/event-stream": {Schema: schema}},
		}}
	}
	site := huma.Operation{
		OperationID: "events", Method: http.MethodGet, Path: "/v1/events", Tags: []string{"events"},
		Summary: "Stream what happens at the site", Responses: responses(),
	}
	a.prepare(&site)
	huma.Register(a.huma, site, func(ctx context.Context, in *EventsInput) (*huma.StreamResponse, error) {
		return a.events(ctx, "", in)
	})
	one := huma.Operation{
		OperationID: "cluster-events", Method: http.MethodGet, Path: "/v1/clusters/{cluster}/events", Tags: []string{"events"},
		Summary: "Stream what happens to a cluster, from its beginning", Responses: responses(),
	}
	a.prepare(&one)
	huma.Register(a.huma, one, func(ctx context.Context, in *clusterEventsInput) (*huma.StreamResponse, error) {
		return a.events(ctx, in.Cluster, &in.EventsInput)
	})
}

func (a *API) events(ctx context.Context, cluster string, in *EventsInput) (*huma.StreamResponse, error) {
	q := wire.EventQuery{Cluster: cluster, Follow: in.Follow != "0" && in.Follow != "false", Newest: in.Newest, Limit: in.Limit}
	if last := strings.TrimSpace(cmp.Or(in.LastEventID, in.After)); last != "" {
		n, err := strconv.ParseInt(last, 10, 64)
		if err != nil || n < 0 {
			return nil, a.fail(ctx, muster.Errorf(muster.EInvalid, "%.20q is not the sequence number of an event", last).Because(muster.ReasonBadValue).
				WithHint("send the id of the last event, or nothing"))
		}
		q.After = n
	}
	if err := live(ctx); err != nil {
		return nil, a.fail(ctx, err)
	}
	stop, cancel := context.WithCancel(ctx)
	stream, err := a.service.Events(stop, who(ctx), q)
	if err != nil {
		cancel()
		return nil, a.fail(ctx, err)
	}
	return a.stream(stop, cancel, func(out *eventWriter) {
		if err := stream(out.send); err == nil && stop.Err() == nil {
			_ = out.raw("event: end\ndata: {}\n\n")
		}
	}), nil
}

// stream answers with server-sent events: tell writes them, until ctx ends or
// there is no more to tell.
func (a *API) stream(ctx context.Context, cancel context.CancelFunc, tell func(*eventWriter)) *huma.StreamResponse {
	return &huma.StreamResponse{Body: func(hctx huma.Context) {
		defer cancel()
		r, w := humago.Unwrap(hctx)
		defer a.whileAllowed(r, cancel)()
		out := &eventWriter{w: w, control: http.NewResponseController(w)}
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
		_ = out.raw(": muster\n\n")
		var beat sync.WaitGroup
		beat.Go(func() { a.beat(ctx, cancel, out) })
		tell(out)
		cancel()
		beat.Wait()
	}}
}

// beat shows a silent client that the stream lives, learns from a failed write
// that the client does not, and ends the stream when the server closes.
func (a *API) beat(ctx context.Context, cancel context.CancelFunc, out *eventWriter) {
	tick := time.NewTicker(a.heartbeat)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.closing:
			cancel()
			return
		case <-tick.C:
			if out.raw(": alive\n\n") != nil {
				cancel()
				return
			}
		}
	}
}

// eventWriter writes server-sent events; safe for concurrent use.
type eventWriter struct {
	mu      sync.Mutex
	w       http.ResponseWriter
	control *http.ResponseController
}

func (o *eventWriter) send(e wire.Event) error {
	data, err := replyjson.Marshal(e)
	if err != nil {
		return err
	}
	var b strings.Builder
	if e.Seq > 0 {
		b.WriteString("id: " + strconv.FormatInt(e.Seq, 10) + "\n")
	}
	b.WriteString("data: ")
	b.Write(data)
	b.WriteString("\n\n")
	return o.raw(b.String())
}

func (o *eventWriter) raw(s string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	_ = o.control.SetWriteDeadline(time.Now().Add(10 * time.Second))
	if _, err := o.w.Write([]byte(s)); err != nil {
		return err
	}
	return o.control.Flush()
}
