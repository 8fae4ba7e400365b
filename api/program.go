package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Programs run unchanged on clusters, and leave their figures.
type Programs interface {
	AddProgram(ctx context.Context, who muster.Actor, r wire.ProgramRequest) (wire.Program, error)
	Programs(ctx context.Context, who muster.Actor, page wire.Page) (wire.ProgramList, error)
	RemoveProgram(ctx context.Context, who muster.Actor, ref string) error
	StartRun(ctx context.Context, who muster.Actor, cluster string, r wire.RunRequest) (wire.ProgramJob, error)
	RunJob(ctx context.Context, who muster.Actor, id string) (wire.ProgramJob, error)
	ReportRun(ctx context.Context, who muster.Actor, id string, r wire.RunReport) (wire.RunProgress, error)
	ProgramRuns(ctx context.Context, who muster.Actor, q wire.RunQuery) (wire.ProgramRunList, error)
	ProgramRun(ctx context.Context, who muster.Actor, id string) (muster.ProgramRun, error)
}

type programInput struct{ Body wire.ProgramRequest }

// ProgramRef names a program in a path.
type ProgramRef struct {
	Project string `path:"project" maxLength:"64"`
	Name    string `path:"name" maxLength:"64"`
}

type startInput struct {
	ClusterRef
	Body wire.RunRequest
}

// RunRef names a run in a path.
type RunRef struct {
	Run string `path:"run" maxLength:"64" doc:"ID of a run"`
}

type reportInput struct {
	RunRef
	Body wire.RunReport
}

type runsInput struct {
	Program string `query:"program" maxLength:"128" doc:"Only of this program: its name, or PROJECT/NAME"`
	Cluster string `query:"cluster" maxLength:"128" doc:"Only on this cluster: its name or ID"`
	Page
}

func (a *API) programRoutes() {
	programs := []string{"programs"}
	route(a, huma.Operation{
		OperationID: "list-programs", Method: http.MethodGet, Path: "/v1/programs", Tags: programs,
		Summary: "List programs: built-in ones, and those of the caller's projects",
	}, func(ctx context.Context, in *pageInput) (wire.ProgramList, error) {
		return a.service.Programs(ctx, who(ctx), in.page())
	})
	route(a, huma.Operation{
		OperationID: "add-program", Method: http.MethodPost, Path: "/v1/programs", Tags: programs,
		Summary: "Add a program to a project",
	}, func(ctx context.Context, in *programInput) (wire.Program, error) {
		return a.service.AddProgram(ctx, who(ctx), in.Body)
	})
	route(a, huma.Operation{
		OperationID: "remove-program", Method: http.MethodDelete, Path: "/v1/programs/{project}/{name}", Tags: programs,
		Summary: "Remove a program; its runs stay on record",
	}, func(ctx context.Context, in *ProgramRef) (wire.Done, error) {
		return wire.Done{Status: "removed"}, a.service.RemoveProgram(ctx, who(ctx), in.Project+"/"+in.Name)
	})
	route(a, huma.Operation{
		OperationID: "start-run", Method: http.MethodPost, Path: "/v1/clusters/{cluster}/runs", Tags: programs,
		Summary:     "Put a run of a program on record",
		Description: "The reply has the scripts that submit its job and look at it. Run them with bash on the head of the cluster, as the user, and report what they print.",
	}, func(ctx context.Context, in *startInput) (wire.ProgramJob, error) {
		return a.service.StartRun(ctx, who(ctx), in.Cluster, in.Body)
	})
	route(a, huma.Operation{
		OperationID: "list-runs", Method: http.MethodGet, Path: "/v1/runs", Tags: programs,
		Summary: "List runs of programs, the newest first",
	}, func(ctx context.Context, in *runsInput) (wire.ProgramRunList, error) {
		return a.service.ProgramRuns(ctx, who(ctx), wire.RunQuery{Program: in.Program, Cluster: in.Cluster, Page: in.page()})
	})
	route(a, huma.Operation{
		OperationID: "show-run", Method: http.MethodGet, Path: "/v1/runs/{run}", Tags: programs, Summary: "Show a run of a program",
	}, func(ctx context.Context, in *RunRef) (muster.ProgramRun, error) {
		return a.service.ProgramRun(ctx, who(ctx), in.Run)
	})
	route(a, huma.Operation{
		OperationID: "run-job", Method: http.MethodGet, Path: "/v1/runs/{run}/job", Tags: programs,
		Summary: "Show a run with the scripts of its job", Description: "To go on with a run after its client was interrupted.",
	}, func(ctx context.Context, in *RunRef) (wire.ProgramJob, error) {
		return a.service.RunJob(ctx, who(ctx), in.Run)
	})
	route(a, huma.Operation{
		OperationID: "report-run", Method: http.MethodPost, Path: "/v1/runs/{run}/report", Tags: programs,
		Summary: "Report what the job of a run printed", Description: "The end of the job ends the run: its check, its figure and its conditions are on record then, and stay.",
	}, func(ctx context.Context, in *reportInput) (wire.RunProgress, error) {
		return a.service.ReportRun(ctx, who(ctx), in.Run, in.Body)
	})
}
