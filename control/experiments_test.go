package control_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/wire"
)

// What is wrong with the clusters of an experiment is told of the file that somebody wrote, and of all blocks at once.
func TestWrongClustersOfExperiments(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 4})
	_, err := s.Control.StartExperiment(t.Context(), root(), wire.ExperimentRequest{Text: `name: ab
project: default
cluster: {nodes: 2, head: sharedx, users: [alice], colour: red}
matrix:
  program: ep
  link_rate: [1Gb/s, 2Gb/s]
launches: 4
`})
	var e *muster.Error
	if !errors.As(err, &e) || e.Code != muster.EInvalid {
		t.Fatalf("%v", err)
	}
	found := map[string]int{}
	for _, p := range e.Problems {
		if found[p.Field]++; p.Place != "" || !strings.Contains(p.Message, "block link_rate=") {
			t.Errorf("%+v", p)
		}
	}
	if found["cluster.head"] != 2 || found["cluster.colour"] != 2 {
		t.Errorf("%+v", e.Problems)
	}
}
