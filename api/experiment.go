package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Experiments launch programs under factors that vary. Clients run them, step by step.
type Experiments interface {
	StartExperiment(ctx context.Context, who muster.Actor, r wire.ExperimentRequest) (wire.Experiment, error)
	Experiments(ctx context.Context, who muster.Actor, page wire.Page) (wire.ExperimentList, error)
	Experiment(ctx context.Context, who muster.Actor, ref string, ask wire.ExperimentForecast) (wire.Experiment, error)
	ExperimentLaunches(ctx context.Context, who muster.Actor, ref string, page wire.Page) (wire.ExperimentLaunchList, error)
	NextStep(ctx context.Context, who muster.Actor, ref string, call wire.ExperimentCall) (wire.ExperimentStep, error)
	StopExperiment(ctx context.Context, who muster.Actor, ref string) (wire.Experiment, error)
}

type experimentInput struct{ Body wire.ExperimentRequest }

// ExperimentRef names an experiment in a path.
type ExperimentRef struct {
	Experiment string `path:"experiment" maxLength:"128" doc:"ID or name, or PROJECT/NAME"`
}

type showExperimentInput struct {
	ExperimentRef
	N     int `query:"hpl_n" minimum:"0" maximum:"1073741824" doc:"Order of a matrix for which HPL's rate and time are extrapolated"`
	Nodes int `query:"hpl_nodes" minimum:"0" maximum:"1000000" doc:"Number of nodes for which HPL's largest rate is extrapolated"`
}

type launchesInput struct {
	ExperimentRef
	Page
}

type stepInput struct {
	ExperimentRef
	Body wire.ExperimentCall
}

func (a *API) experimentRoutes() {
	tags := []string{"experiments"}
	route(a, huma.Operation{
		OperationID: "list-experiments", Method: http.MethodGet, Path: "/v1/experiments", Tags: tags, Summary: "List experiments, the newest first",
	}, func(ctx context.Context, in *pageInput) (wire.ExperimentList, error) {
		return a.service.Experiments(ctx, who(ctx), in.page())
	})
	route(a, huma.Operation{
		OperationID: "start-experiment", Method: http.MethodPost, Path: "/v1/experiments", Tags: tags,
		Summary:     "Plan an experiment, or find the one of this name and file",
		Description: "What is planned is fixed from then on. Ask for its steps, and do them as the caller.",
	}, func(ctx context.Context, in *experimentInput) (wire.Experiment, error) {
		return a.service.StartExperiment(ctx, who(ctx), in.Body)
	})
	route(a, huma.Operation{
		OperationID: "show-experiment", Method: http.MethodGet, Path: "/v1/experiments/{experiment}", Tags: tags, Summary: "Show an experiment with its results",
	}, func(ctx context.Context, in *showExperimentInput) (wire.Experiment, error) {
		return a.service.Experiment(ctx, who(ctx), in.Experiment, wire.ExperimentForecast{N: in.N, Nodes: in.Nodes})
	})
	route(a, huma.Operation{
		OperationID: "list-launches", Method: http.MethodGet, Path: "/v1/experiments/{experiment}/launches", Tags: tags, Summary: "List the launches of an experiment, in order",
	}, func(ctx context.Context, in *launchesInput) (wire.ExperimentLaunchList, error) {
		return a.service.ExperimentLaunches(ctx, who(ctx), in.Experiment, in.page())
	})
	route(a, huma.Operation{
		OperationID: "next-step", Method: http.MethodPost, Path: "/v1/experiments/{experiment}/next", Tags: tags,
		Summary: "Say what comes next", Description: "The intent is on record before the reply. Asked again, it is the same step, until it is done.",
	}, func(ctx context.Context, in *stepInput) (wire.ExperimentStep, error) {
		return a.service.NextStep(ctx, who(ctx), in.Experiment, in.Body)
	})
	route(a, huma.Operation{
		OperationID: "stop-experiment", Method: http.MethodPost, Path: "/v1/experiments/{experiment}/stop", Tags: tags, Summary: "End an experiment, and give its clusters back",
	}, func(ctx context.Context, in *ExperimentRef) (wire.Experiment, error) {
		return a.service.StopExperiment(ctx, who(ctx), in.Experiment)
	})
}
