package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Changes are what can be changed of a cluster that lives.
type Changes interface {
	// Scale returns a *muster.Error with code ENever or ENoCapacity, and the
	// answer of admission, when there is no room for more nodes.
	Scale(ctx context.Context, who muster.Actor, ref string, r wire.ScaleRequest) (wire.Scaled, *muster.Answer, error)
	Extend(ctx context.Context, who muster.Actor, ref string, r wire.ExtendRequest) (wire.Extended, error)
	// Pause and Resume return a *muster.Error with code ENoCapacity when the time that is
	// asked for cannot be promised.
	Pause(ctx context.Context, who muster.Actor, ref string, r wire.PauseRequest) (wire.Paused, error)
	Resume(ctx context.Context, who muster.Actor, ref string, r wire.ResumeRequest) (wire.Resumed, error)
	Share(ctx context.Context, who muster.Actor, ref string, r wire.ShareRequest) (wire.Shared, error)
	Measure(ctx context.Context, who muster.Actor, ref string, r wire.MeasureRequest) (wire.MeasureReply, error)
}

type scaleInput struct {
	ClusterRef
	Body wire.ScaleRequest
}

type extendInput struct {
	ClusterRef
	Body wire.ExtendRequest
}

type pauseInput struct {
	ClusterRef
	Body wire.PauseRequest
}

type resumeInput struct {
	ClusterRef
	Body wire.ResumeRequest
}

type measureInput struct {
	ClusterRef
	Body wire.MeasureRequest
}

type shareInput struct {
	ClusterRef
	Body wire.ShareRequest
}

func (a *API) changeRoutes() {
	op := huma.Operation{
		OperationID: "scale-cluster", Method: http.MethodPost, Path: "/v1/clusters/{cluster}/scale", Tags: []string{"clusters"},
		Summary: "Change the size of a cluster",
		Description: "Begins the change and answers at once; the cluster's condition scaling and its events tell how far it is. " +
			"New nodes take jobs together, once all of them are ready; nodes that leave get no new jobs and go once theirs are done. " +
			"While a change is under way only its reverse is accepted, and undoes it.",
		DefaultStatus: http.StatusAccepted,
	}
	a.prepare(&op)
	huma.Register(a.huma, op, func(ctx context.Context, in *scaleInput) (*reply[wire.Scaled], error) {
		if in.Body.Cluster != "" && in.Body.Cluster != in.Cluster {
			return nil, a.fail(ctx, muster.Errorf(muster.EInvalid, "the path names cluster %.64q, and the request %.64q", in.Cluster, in.Body.Cluster).Because(muster.ReasonContradiction).
				WithHint("leave cluster out of the request, or send it to /v1/scale"))
		}
		return a.scale(ctx, in.Cluster, in.Body)
	})
	a.documentRoutes()
	route(a, huma.Operation{
		OperationID: "extend-cluster", Method: http.MethodPost, Path: "/v1/clusters/{cluster}/extend", Tags: []string{"clusters"},
		Summary: "Give a cluster more time",
	}, func(ctx context.Context, in *extendInput) (wire.Extended, error) {
		return a.service.Extend(ctx, who(ctx), in.Cluster, in.Body)
	})
	route(a, huma.Operation{
		OperationID: "pause-cluster", Method: http.MethodPost, Path: "/v1/clusters/{cluster}/pause", Tags: []string{"clusters"},
		Summary: "Pause a cluster",
		Description: "Its machines are given back once its jobs have come to an end; its name, addresses, keys, volumes and the scheduler's state stay, and its lease clock stands still. " +
			"The reply names what will not survive. Where running work would be lost it is refused, unless lose_running says that it may be.",
	}, func(ctx context.Context, in *pauseInput) (wire.Paused, error) {
		return a.service.Pause(ctx, who(ctx), in.Cluster, in.Body)
	})
	route(a, huma.Operation{
		OperationID: "resume-cluster", Method: http.MethodPost, Path: "/v1/clusters/{cluster}/resume", Tags: []string{"clusters"},
		Summary:     "Bring a paused cluster back",
		Description: "At once where there is room, else in its turn in the queue, or at a promised time. A pause that is planned, or whose jobs still run, is taken back.",
	}, func(ctx context.Context, in *resumeInput) (wire.Resumed, error) {
		return a.service.Resume(ctx, who(ctx), in.Cluster, in.Body)
	})
	route(a, huma.Operation{
		OperationID: "measure-cluster", Method: http.MethodPost, Path: "/v1/clusters/{cluster}/measure", Tags: []string{"certificates"},
		Summary: "Measure the speed of a cluster",
		Description: "Begins the benchmark run and answers at once; the cluster's field measurement and its events tell how far it is. " +
			"When it is done there are new certificates, and the ones before are superseded.",
	}, func(ctx context.Context, in *measureInput) (wire.MeasureReply, error) {
		return a.service.Measure(ctx, who(ctx), in.Cluster, in.Body)
	})
	route(a, huma.Operation{
		OperationID: "share-cluster", Method: http.MethodPost, Path: "/v1/clusters/{cluster}/users", Tags: []string{"clusters"},
		Summary:     "Let people into a cluster, or out of it",
		Description: "Takes effect on a running cluster within moments: accounts and keys come, or logins, processes and jobs end.",
	}, func(ctx context.Context, in *shareInput) (wire.Shared, error) {
		return a.service.Share(ctx, who(ctx), in.Cluster, in.Body)
	})
}

func (a *API) scale(ctx context.Context, cluster string, r wire.ScaleRequest) (*reply[wire.Scaled], error) {
	r.Cluster = ""
	out, answer, err := a.service.Scale(ctx, who(ctx), cluster, r)
	if err != nil {
		public := a.public(ctx, err)
		refused := wire.Refused{Error: *public}
		if answer != nil && (public.Code == muster.ENever || public.Code == muster.ENoCapacity) {
			refused.Status, refused.Answer = string(public.Code), answer
		}
		return nil, &failure{Refused: refused, status: Status(public)}
	}
	return &reply[wire.Scaled]{out}, nil
}
