package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// StartExperiment plans an experiment, or finds the one of its name and file.
func (k *Client) StartExperiment(ctx context.Context, r wire.ExperimentRequest) (wire.Experiment, error) {
	var out wire.Experiment
	return out, k.post(ctx, path("experiments"), r, &out)
}

// Experiments lists experiments, the newest first.
func (k *Client) Experiments(ctx context.Context) (wire.ExperimentList, error) {
	list, err := pages(ctx, k, path("experiments"), nil, 0, func(l wire.ExperimentList) ([]wire.ExperimentLine, wire.More) { return l.Experiments, l.More })
	return wire.ExperimentList{Experiments: list}, err
}

// Experiment is one experiment with what it shows so far.
func (k *Client) Experiment(ctx context.Context, ref string, ask wire.ExperimentForecast) (wire.Experiment, error) {
	var out wire.Experiment
	q := url.Values{}
	for name, v := range map[string]int{"hpl_n": ask.N, "hpl_nodes": ask.Nodes} {
		if v != 0 {
			q.Set(name, strconv.Itoa(v))
		}
	}
	return out, k.get(ctx, path("experiments", ref), q, &out)
}

// ExperimentLaunches are the launches of an experiment, in order.
func (k *Client) ExperimentLaunches(ctx context.Context, ref string) ([]muster.ExperimentLaunch, error) {
	return pages(ctx, k, path("experiments", ref, "launches"), nil, 0, func(l wire.ExperimentLaunchList) ([]muster.ExperimentLaunch, wire.More) { return l.Launches, l.More })
}

// NextStep says what comes next in an experiment.
func (k *Client) NextStep(ctx context.Context, ref string, call wire.ExperimentCall) (wire.ExperimentStep, error) {
	var out wire.ExperimentStep
	return out, k.post(ctx, path("experiments", ref, "next"), call, &out)
}

// StopExperiment ends an experiment, and has its clusters given back.
func (k *Client) StopExperiment(ctx context.Context, ref string) (wire.Experiment, error) {
	var out wire.Experiment
	return out, k.do(ctx, call{method: http.MethodPost, path: path("experiments", ref, "stop"), out: &out})
}
