package api

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/duration"
	"github.com/muster-hpc/muster/wire"
)

// Seeing is what was and is measured.
type Seeing interface {
	// UsageOver is what a cluster used in a time; also of a deleted one.
	UsageOver(ctx context.Context, who muster.Actor, ref string, q wire.UsageQuery) (wire.ClusterUsage, error)
	SiteUsage(ctx context.Context, who muster.Actor, q wire.UsageQuery) (wire.SiteUsage, error)
	// Top is the present state of all clusters that the actor may see, or of one.
	Top(ctx context.Context, who muster.Actor, ref string) (wire.Top, error)
}

// Span are the parameters of what was measured over time.
type Span struct {
	Since string `query:"since" maxLength:"32" doc:"How far back: 90s, 30m, 6h or 14d. Curves are given if it is there"`
	Step  string `query:"step" maxLength:"32" doc:"Length of one point, 10s or more; about sixty points without it"`
}

func (s Span) query() (wire.UsageQuery, error) {
	var q wire.UsageQuery
	var bad []muster.Problem
	for _, f := range []struct {
		name, text string
		to         *time.Duration
	}{{"since", s.Since, &q.Since}, {"step", s.Step, &q.Step}} {
		if f.text == "" {
			continue
		}
		d, err := duration.Parse(f.text)
		if err != nil || d <= 0 {
			bad = append(bad, muster.Problem{Field: f.name, Reason: muster.ReasonBadValue, Message: "is not a time", Hint: "write 90s, 30m, 6h, 14d or 2w"})
			continue
		}
		*f.to = d
	}
	if len(bad) > 0 {
		e := muster.Errorf(muster.EInvalid, "the time to show is not right").Because(muster.ReasonBadValue).WithHint("write 90s, 30m, 6h, 14d or 2w")
		return q, e.Listing(bad)
	}
	return q, nil
}

type usageInput struct {
	ClusterRef
	Span
	Node    string `query:"node" maxLength:"128" doc:"Only this node"`
	Samples int    `query:"samples" minimum:"0" maximum:"10000" doc:"How many of the newest samples; 0 means 1. Not with since"`
}

func (a *API) usageRoutes() {
	route(a, huma.Operation{
		OperationID: "usage", Method: http.MethodGet, Path: "/v1/clusters/{cluster}/usage", Tags: []string{"nodes"},
		Summary:     "Read what the nodes use",
		Description: "The newest samples; or, with since, curves over time, also of nodes whose machines are gone and of deleted clusters. Gaps are null.",
	}, func(ctx context.Context, in *usageInput) (usage wire.ClusterUsage, err error) {
		if in.Since == "" && in.Step == "" {
			usage, err = a.service.Usage(ctx, who(ctx), in.Cluster, in.Samples)
			if in.Node != "" {
				usage.Nodes = only(usage.Nodes, in.Node)
			}
		} else {
			var q wire.UsageQuery
			if q, err = in.query(); err != nil {
				return usage, err
			}
			q.Node = in.Node
			if q.Since == 0 {
				q.Since = time.Hour
			}
			usage, err = a.service.UsageOver(ctx, who(ctx), in.Cluster, q)
		}
		usage.Nodes = some(usage.Nodes)
		return usage, err
	})
	route(a, huma.Operation{
		OperationID: "site-usage", Method: http.MethodGet, Path: "/v1/site/usage", Tags: []string{"site"},
		Summary:     "Read what the site was used for",
		Description: "Machines by phase, and the queue, jobs, hosts and cores of each cluster that the caller may see. Administrators see the site's cores and clusters too.",
	}, func(ctx context.Context, in *Span) (wire.SiteUsage, error) {
		q, err := in.query()
		if err != nil {
			return wire.SiteUsage{}, err
		}
		return a.service.SiteUsage(ctx, who(ctx), q)
	})
	route(a, huma.Operation{
		OperationID: "site-top", Method: http.MethodGet, Path: "/v1/site/top", Tags: []string{"site"},
		Summary: "See all clusters at a glance",
	}, func(ctx context.Context, _ *none) (wire.Top, error) {
		return a.service.Top(ctx, who(ctx), "")
	})
	route(a, huma.Operation{
		OperationID: "cluster-top", Method: http.MethodGet, Path: "/v1/clusters/{cluster}/top", Tags: []string{"nodes"},
		Summary: "See the nodes and jobs of a cluster at a glance",
	}, func(ctx context.Context, in *ClusterRef) (wire.Top, error) {
		return a.service.Top(ctx, who(ctx), in.Cluster)
	})
}

func only(list []wire.NodeUsage, node string) []wire.NodeUsage {
	for _, n := range list {
		if n.Node == node {
			return []wire.NodeUsage{n}
		}
	}
	return nil
}
