package client

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Calendar is what the machines of a site do.
func (k *Client) Calendar(ctx context.Context, q wire.CalendarQuery) (wire.Calendar, error) {
	v := url.Values{}
	for key, text := range map[string]string{"from": q.From, "to": q.Until, "class": q.Class} {
		if text != "" {
			v.Set(key, text)
		}
	}
	if q.Mine {
		v.Set("mine", "true")
	}
	var out wire.Calendar
	return out, k.get(ctx, path("calendar"), v, &out)
}

// Change changes a cluster that has not started yet.
func (k *Client) Change(ctx context.Context, ref string, r wire.ChangeRequest) (wire.Changed, error) {
	var out wire.Changed
	return out, k.post(ctx, path("clusters", ref, "change"), r, &out)
}

// AddMaintenance keeps machines free of tenants for a time.
func (k *Client) AddMaintenance(ctx context.Context, r wire.MaintenanceRequest) (wire.Maintenance, error) {
	var out wire.Maintenance
	return out, k.post(ctx, path("maintenance"), r, &out)
}

// Maintenance lists maintenance windows.
func (k *Client) Maintenance(ctx context.Context) (wire.MaintenanceList, error) {
	list, err := pages(ctx, k, path("maintenance"), nil, 0, func(l wire.MaintenanceList) ([]muster.MaintenanceWindow, wire.More) { return l.Windows, l.More })
	return wire.MaintenanceList{Windows: list}, err
}

// RemoveMaintenance removes a window.
func (k *Client) RemoveMaintenance(ctx context.Context, id string) error {
	return k.do(ctx, call{method: http.MethodDelete, path: path("maintenance", id), out: &struct{}{}})
}

// Projects lists projects.
func (k *Client) Projects(ctx context.Context) (wire.ProjectList, error) {
	list, err := pages(ctx, k, path("projects"), nil, 0, func(l wire.ProjectList) ([]wire.ProjectUse, wire.More) { return l.Projects, l.More })
	return wire.ProjectList{Projects: list}, err
}

// Project shows one.
func (k *Client) Project(ctx context.Context, name string) (wire.ProjectUse, error) {
	var out wire.ProjectUse
	return out, k.get(ctx, path("projects", name), nil, &out)
}

// LimitProject changes the limits and rights of a project.
func (k *Client) LimitProject(ctx context.Context, name string, r wire.ProjectLimits) (wire.ProjectUse, error) {
	var out wire.ProjectUse
	return out, k.post(ctx, path("projects", name, "limits"), r, &out)
}

// SetProjectMember makes somebody a member or a manager of a project, or neither.
func (k *Client) SetProjectMember(ctx context.Context, name string, r wire.ProjectMember) (wire.ProjectUse, error) {
	var out wire.ProjectUse
	return out, k.post(ctx, path("projects", name, "members"), r, &out)
}

// AllowProject lifts the limits of a project for one cluster.
func (k *Client) AllowProject(ctx context.Context, name string, r wire.ProjectAllow) (wire.ProjectUse, error) {
	var out wire.ProjectUse
	return out, k.post(ctx, path("projects", name, "exceptions"), r, &out)
}

// LicenceProject lets the nodes of a project's clusters reach a licence server, or not any more.
func (k *Client) LicenceProject(ctx context.Context, name string, r wire.ProjectLicence) (wire.ProjectUse, error) {
	var out wire.ProjectUse
	return out, k.post(ctx, path("projects", name, "licences"), r, &out)
}

// Save keeps what a cluster is as a template.
func (k *Client) Save(ctx context.Context, ref string, r wire.SaveRequest) (wire.Template, error) {
	var out wire.Template
	return out, k.post(ctx, path("clusters", ref, "save"), r, &out)
}

// Templates lists templates.
func (k *Client) Templates(ctx context.Context) (wire.TemplateList, error) {
	list, err := pages(ctx, k, path("templates"), nil, 0, func(l wire.TemplateList) ([]wire.Template, wire.More) { return l.Templates, l.More })
	return wire.TemplateList{Templates: list}, err
}

// Template shows one by PROJECT/NAME.
func (k *Client) Template(ctx context.Context, ref string) (wire.Template, error) {
	project, name, _ := strings.Cut(ref, "/")
	var out wire.Template
	return out, k.get(ctx, path("templates", project, name), nil, &out)
}

// DeleteTemplate deletes one by PROJECT/NAME.
func (k *Client) DeleteTemplate(ctx context.Context, ref string) error {
	project, name, _ := strings.Cut(ref, "/")
	return k.do(ctx, call{method: http.MethodDelete, path: path("templates", project, name), out: &struct{}{}})
}
