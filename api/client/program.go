package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// AddProgram adds a program to a project.
func (k *Client) AddProgram(ctx context.Context, r wire.ProgramRequest) (wire.Program, error) {
	var out wire.Program
	return out, k.post(ctx, path("programs"), r, &out)
}

// Programs lists programs.
func (k *Client) Programs(ctx context.Context) (wire.ProgramList, error) {
	list, err := pages(ctx, k, path("programs"), nil, 0, func(l wire.ProgramList) ([]wire.Program, wire.More) { return l.Programs, l.More })
	return wire.ProgramList{Programs: list}, err
}

// RemoveProgram removes a program of a project.
func (k *Client) RemoveProgram(ctx context.Context, project, name string) error {
	return k.do(ctx, call{method: http.MethodDelete, path: path("programs", project, name), out: &struct{}{}})
}

// StartRun puts a run of a program on record; its job is to be submitted by the caller.
func (k *Client) StartRun(ctx context.Context, cluster string, r wire.RunRequest) (wire.ProgramJob, error) {
	var out wire.ProgramJob
	return out, k.post(ctx, path("clusters", cluster, "runs"), r, &out)
}

// RunJob is a run with the scripts of its job.
func (k *Client) RunJob(ctx context.Context, id string) (wire.ProgramJob, error) {
	var out wire.ProgramJob
	return out, k.get(ctx, path("runs", id, "job"), nil, &out)
}

// ReportRun reports what the job of a run printed.
func (k *Client) ReportRun(ctx context.Context, id muster.ProgramRunID, r wire.RunReport) (wire.RunProgress, error) {
	var out wire.RunProgress
	return out, k.post(ctx, path("runs", string(id), "report"), r, &out)
}

// ProgramRuns lists runs of programs, the newest first: so many, 0 for all.
func (k *Client) ProgramRuns(ctx context.Context, q wire.RunQuery) (wire.ProgramRunList, error) {
	v := url.Values{}
	for key, text := range map[string]string{"program": q.Program, "cluster": q.Cluster} {
		if text != "" {
			v.Set(key, text)
		}
	}
	list, err := pages(ctx, k, path("runs"), v, q.Limit, func(l wire.ProgramRunList) ([]muster.ProgramRun, wire.More) { return l.Runs, l.More })
	return wire.ProgramRunList{Runs: list}, err
}

// ProgramRun is one run.
func (k *Client) ProgramRun(ctx context.Context, id string) (muster.ProgramRun, error) {
	var out muster.ProgramRun
	return out, k.get(ctx, path("runs", id), nil, &out)
}
