package api

import (
	"context"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/duration"
	"github.com/muster-hpc/muster/internal/replyjson"
	"github.com/muster-hpc/muster/wire"
)

// Journals are what nodes logged.
type Journals interface {
	Logs(ctx context.Context, who muster.Actor, ref string, q wire.LogQuery) (wire.Logs, error)
	// FollowLogs checks the query and returns the stream: a function that calls
	// send for each step until the context ends, send fails or the cluster is
	// deleted.
	FollowLogs(ctx context.Context, who muster.Actor, ref string, q wire.LogQuery) (func(send func(wire.LogStep) error) error, error)
}

// LogsInput says which lines are wanted.
type LogsInput struct {
	ClusterRef
	Node     string `query:"node" maxLength:"128" doc:"Only this node"`
	Lines    int    `query:"lines" minimum:"0" maximum:"10000" doc:"How many of the newest lines; 0 means 200"`
	Since    string `query:"since" maxLength:"64" doc:"Only lines from this time on: RFC 3339, or how long ago (30m, 6h, 2d)"`
	Unit     string `query:"unit" maxLength:"256" doc:"Only lines of this unit; slurmd means slurmd.service too"`
	Priority string `query:"priority" maxLength:"16" doc:"Only lines as severe as this: emerg, alert, crit, err, warning, notice, info, debug, or 0 to 7"`
}

func (in *LogsInput) query(now time.Time) (wire.LogQuery, error) {
	q := wire.LogQuery{Node: in.Node, Lines: in.Lines, Unit: in.Unit}
	var bad []muster.Problem
	if in.Since != "" {
		if ago, err := duration.Parse(in.Since); err == nil && ago > 0 {
			q.Since = now.Add(-ago)
		} else if q.Since, err = time.Parse(time.RFC3339Nano, in.Since); err != nil {
			bad = append(bad, muster.Problem{Field: "since", Reason: muster.ReasonBadValue, Message: "is not a time", Hint: "write 30m, 6h, 2d or 2026-03-01T12:00:00Z"})
		}
	}
	if in.Priority != "" {
		n, err := strconv.Atoi(in.Priority)
		if err != nil {
			n = slices.Index(wire.LogPriorities(), in.Priority)
		}
		if n < 0 || n > 7 {
			bad = append(bad, muster.Problem{Field: "priority", Reason: muster.ReasonBadValue, Message: "is not a priority", Hint: "write one of " + strings.Join(wire.LogPriorities(), ", ")})
		}
		q.Least, q.Filter = n, true
	}
	if len(bad) > 0 {
		e := muster.Errorf(muster.EInvalid, "the selection of log lines is invalid").Because(muster.ReasonBadValue).WithHint("see 'muster logs --help'")
		return q, e.Listing(bad)
	}
	return q, nil
}

func (a *API) logRoutes() {
	route(a, huma.Operation{
		OperationID: "logs", Method: http.MethodGet, Path: "/v1/clusters/{cluster}/logs", Tags: []string{"nodes"},
		Summary:     "Read the newest lines of the nodes' journals",
		Description: "They outlive the machines, and for some days the cluster: name a deleted one by its ID.",
	}, func(ctx context.Context, in *LogsInput) (wire.Logs, error) {
		q, err := in.query(time.Now())
		if err != nil {
			return wire.Logs{}, err
		}
		logs, err := a.service.Logs(ctx, who(ctx), in.Cluster, q)
		logs.Lines = some(logs.Lines)
		return logs, err
	})
	schema := a.huma.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[wire.LogLine](), true, "LogLine")
	op := huma.Operation{
		OperationID: "follow-logs", Method: http.MethodGet, Path: "/v1/clusters/{cluster}/logs/stream", Tags: []string{"nodes"},
		Summary: "Stream the nodes' journals",
		Description: "Server-sent events: first the newest lines, then an event named 'now', then lines as they come. An event named 'lost' reports " +
			"how many lines were left out because they were not read in time; one named 'end', that the cluster is deleted.",
		Responses: map[string]*huma.Response{"200": {
			Description: "Each event without a name has a line as its data",
			Content:     map[string]*huma.MediaType{"text/event-stream": {Schema: schema}},
		}},
	}
	a.prepare(&op)
	huma.Register(a.huma, op, a.followLogs)
}

func (a *API) followLogs(ctx context.Context, in *LogsInput) (*huma.StreamResponse, error) {
	q, err := in.query(time.Now())
	if err != nil {
		return nil, a.fail(ctx, err)
	}
	if err := live(ctx); err != nil {
		return nil, a.fail(ctx, err)
	}
	stop, cancel := context.WithCancel(ctx)
	stream, err := a.service.FollowLogs(stop, who(ctx), in.Cluster, q)
	if err != nil {
		cancel()
		return nil, a.fail(ctx, err)
	}
	return a.stream(stop, cancel, func(out *eventWriter) {
		_ = stream(out.logStep) // the client has gone, or it is over
	}), nil
}

// logStep writes one step of a stream of journals.
func (o *eventWriter) logStep(s wire.LogStep) error {
	var b strings.Builder
	if s.Lost > 0 {
		b.WriteString("event: lost\ndata: {\"lost\":" + strconv.FormatInt(s.Lost, 10) + "}\n\n")
	}
	switch {
	case s.End != "":
		why, err := replyjson.Marshal(struct {
			Why string `json:"why"`
		}{s.End})
		if err != nil {
			return err
		}
		b.WriteString("event: end\ndata: " + string(why) + "\n\n")
	case s.LogLine == nil:
		b.WriteString("event: now\ndata: {}\n\n")
	default:
		line, err := replyjson.Marshal(s.LogLine)
		if err != nil {
			return err
		}
		b.WriteString("data: " + string(line) + "\n\n")
	}
	return o.raw(b.String())
}
