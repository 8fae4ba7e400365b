package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Planning is the pool in time: who has what when, and what may be asked for.
type Planning interface {
	Calendar(ctx context.Context, who muster.Actor, q wire.CalendarQuery) (wire.Calendar, error)
	Change(ctx context.Context, who muster.Actor, ref string, r wire.ChangeRequest) (wire.Changed, error)
	AddMaintenance(ctx context.Context, who muster.Actor, r wire.MaintenanceRequest) (wire.Maintenance, error)
	Maintenance(ctx context.Context, who muster.Actor, page wire.Page) (wire.MaintenanceList, error)
	RemoveMaintenance(ctx context.Context, who muster.Actor, id string) error
	Projects(ctx context.Context, who muster.Actor, page wire.Page) (wire.ProjectList, error)
	Project(ctx context.Context, who muster.Actor, name string) (wire.ProjectUse, error)
	LimitProject(ctx context.Context, who muster.Actor, name string, r wire.ProjectLimits) (wire.ProjectUse, error)
	SetMember(ctx context.Context, who muster.Actor, name string, r wire.ProjectMember) (wire.ProjectUse, error)
	AllowProject(ctx context.Context, who muster.Actor, name string, r wire.ProjectAllow) (wire.ProjectUse, error)
	LicenceProject(ctx context.Context, who muster.Actor, name string, r wire.ProjectLicence) (wire.ProjectUse, error)
	Save(ctx context.Context, who muster.Actor, ref string, r wire.SaveRequest) (wire.Template, error)
	Templates(ctx context.Context, who muster.Actor, page wire.Page) (wire.TemplateList, error)
	Template(ctx context.Context, who muster.Actor, ref string) (wire.Template, error)
	DeleteTemplate(ctx context.Context, who muster.Actor, ref string) error
}

type calendarInput struct {
	From  string `query:"from" maxLength:"64" doc:"From when, as a request's start is written; default: now"`
	Until string `query:"to" maxLength:"64" doc:"Until when; default: a week later"`
	Class string `query:"class" maxLength:"64" doc:"Only machines of this class; * and ? stand for anything"`
	Mine  bool   `query:"mine" doc:"Only what the caller's projects have"`
}

type changeInput struct {
	ClusterRef
	Body wire.ChangeRequest
}

type maintenanceInput struct{ Body wire.MaintenanceRequest }

type pageInput struct{ Page }

// WindowRef names a maintenance window in a path.
type WindowRef struct {
	Window string `path:"window" maxLength:"64"`
}

// ProjectRef names a project in a path.
type ProjectRef struct {
	Project string `path:"project" maxLength:"64" doc:"Name; * for what holds for all that have no limits of their own"`
}

type limitsInput struct {
	ProjectRef
	Body wire.ProjectLimits
}

type memberInput struct {
	ProjectRef
	Body wire.ProjectMember
}

type allowInput struct {
	ProjectRef
	Body wire.ProjectAllow
}

type licenceInput struct {
	ProjectRef
	Body wire.ProjectLicence
}

type saveInput struct {
	ClusterRef
	Body wire.SaveRequest
}

// TemplateRef names a template in a path.
type TemplateRef struct {
	Project string `path:"project" maxLength:"64"`
	Name    string `path:"name" maxLength:"64"`
}

func (a *API) planningRoutes() {
	calendar, projects, templates := []string{"calendar"}, []string{"projects"}, []string{"templates"}
	route(a, huma.Operation{
		OperationID: "calendar", Method: http.MethodGet, Path: "/v1/calendar", Tags: calendar,
		Summary:     "Show what machines do, from one time until another",
		Description: "Clusters, promises, estimates of requests that wait, pauses and maintenance. What the caller may not see is named busy.",
	}, func(ctx context.Context, in *calendarInput) (wire.Calendar, error) {
		return a.service.Calendar(ctx, who(ctx), wire.CalendarQuery{From: in.From, Until: in.Until, Class: in.Class, Mine: in.Mine})
	})
	route(a, huma.Operation{
		OperationID: "change-cluster", Method: http.MethodPost, Path: "/v1/clusters/{cluster}/change", Tags: []string{"clusters"},
		Summary:     "Change a cluster that has not started yet",
		Description: "Its start, its walltime or its nodes. Where that cannot be, nothing changes, and the error names the nearest time that can be promised.",
	}, func(ctx context.Context, in *changeInput) (wire.Changed, error) {
		return a.service.Change(ctx, who(ctx), in.Cluster, in.Body)
	})
	route(a, huma.Operation{
		OperationID: "list-maintenance", Method: http.MethodGet, Path: "/v1/maintenance", Tags: calendar,
		Summary: "List maintenance windows",
	}, func(ctx context.Context, in *pageInput) (wire.MaintenanceList, error) {
		return a.service.Maintenance(ctx, who(ctx), in.page())
	})
	route(a, huma.Operation{
		OperationID: "add-maintenance", Method: http.MethodPost, Path: "/v1/maintenance", Tags: calendar,
		Summary:     "Keep machines free of tenants for a time",
		Description: "A window that would break promises, or has clusters in its way, is refused with their names unless force says otherwise.",
	}, func(ctx context.Context, in *maintenanceInput) (wire.Maintenance, error) {
		return a.service.AddMaintenance(ctx, who(ctx), in.Body)
	})
	route(a, huma.Operation{
		OperationID: "remove-maintenance", Method: http.MethodDelete, Path: "/v1/maintenance/{window}", Tags: calendar,
		Summary: "Remove a maintenance window",
	}, func(ctx context.Context, in *WindowRef) (wire.Done, error) {
		return wire.Done{Status: "removed"}, a.service.RemoveMaintenance(ctx, who(ctx), in.Window)
	})
	route(a, huma.Operation{
		OperationID: "list-projects", Method: http.MethodGet, Path: "/v1/projects", Tags: projects,
		Summary: "List projects with their limits and what is in use",
	}, func(ctx context.Context, in *pageInput) (wire.ProjectList, error) {
		return a.service.Projects(ctx, who(ctx), in.page())
	})
	route(a, huma.Operation{
		OperationID: "show-project", Method: http.MethodGet, Path: "/v1/projects/{project}", Tags: projects,
		Summary: "Show a project",
	}, func(ctx context.Context, in *ProjectRef) (wire.ProjectUse, error) {
		return a.service.Project(ctx, who(ctx), in.Project)
	})
	route(a, huma.Operation{
		OperationID: "limit-project", Method: http.MethodPost, Path: "/v1/projects/{project}/limits", Tags: projects,
		Summary: "Change the limits and rights of a project",
	}, func(ctx context.Context, in *limitsInput) (wire.ProjectUse, error) {
		return a.service.LimitProject(ctx, who(ctx), in.Project, in.Body)
	})
	route(a, huma.Operation{
		OperationID: "set-project-member", Method: http.MethodPost, Path: "/v1/projects/{project}/members", Tags: projects,
		Summary: "Make somebody a member or a manager of a project, or neither",
	}, func(ctx context.Context, in *memberInput) (wire.ProjectUse, error) {
		return a.service.SetMember(ctx, who(ctx), in.Project, in.Body)
	})
	route(a, huma.Operation{
		OperationID: "allow-project", Method: http.MethodPost, Path: "/v1/projects/{project}/exceptions", Tags: projects,
		Summary: "Lift the limits of a project for one cluster",
	}, func(ctx context.Context, in *allowInput) (wire.ProjectUse, error) {
		return a.service.AllowProject(ctx, who(ctx), in.Project, in.Body)
	})
	route(a, huma.Operation{
		OperationID: "licence-project", Method: http.MethodPost, Path: "/v1/projects/{project}/licences", Tags: projects,
		Summary: "Let the nodes of a project reach a licence server, or not any more",
	}, func(ctx context.Context, in *licenceInput) (wire.ProjectUse, error) {
		return a.service.LicenceProject(ctx, who(ctx), in.Project, in.Body)
	})
	route(a, huma.Operation{
		OperationID: "save-cluster", Method: http.MethodPost, Path: "/v1/clusters/{cluster}/save", Tags: templates,
		Summary: "Keep what a cluster is as a template",
	}, func(ctx context.Context, in *saveInput) (wire.Template, error) {
		return a.service.Save(ctx, who(ctx), in.Cluster, in.Body)
	})
	route(a, huma.Operation{
		OperationID: "list-templates", Method: http.MethodGet, Path: "/v1/templates", Tags: templates,
		Summary: "List templates",
	}, func(ctx context.Context, in *pageInput) (wire.TemplateList, error) {
		return a.service.Templates(ctx, who(ctx), in.page())
	})
	route(a, huma.Operation{
		OperationID: "show-template", Method: http.MethodGet, Path: "/v1/templates/{project}/{name}", Tags: templates,
		Summary: "Show a template",
	}, func(ctx context.Context, in *TemplateRef) (wire.Template, error) {
		return a.service.Template(ctx, who(ctx), in.Project+"/"+in.Name)
	})
	route(a, huma.Operation{
		OperationID: "delete-template", Method: http.MethodDelete, Path: "/v1/templates/{project}/{name}", Tags: templates,
		Summary: "Delete a template",
	}, func(ctx context.Context, in *TemplateRef) (wire.Done, error) {
		return wire.Done{Status: "deleted"}, a.service.DeleteTemplate(ctx, who(ctx), in.Project+"/"+in.Name)
	})
}
