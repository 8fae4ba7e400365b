package main

import (
	"errors"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/topology"
	"github.com/muster-hpc/muster/daemon"
	"github.com/muster-hpc/muster/provider/local"
)

// readLocal reads the machines that are slices of this host and the links between what they stand in: everything that
// is wrong with them is told at once.
func readLocal(slices, links []string) (machines []local.Slice, joined []topology.Link, err error) {
	var problems []muster.Problem
	failed := func(err error) bool {
		var e *muster.Error
		if errors.As(err, &e) {
			problems = append(problems, e.Problems...)
		}
		return err != nil
	}
	for _, text := range slices {
		if s, err := local.ParseSlice(text); !failed(err) {
			machines = append(machines, s)
		}
	}
	for _, text := range links {
		if l, err := topology.ParseLink(text); !failed(err) {
			joined = append(joined, l)
		}
	}
	if len(problems) > 0 {
		return nil, nil, muster.Errorf(muster.EInvalid, "the local machines have problems").Because(muster.ReasonHasProblems).Listing(problems)
	}
	_, err = daemon.LocalTree(machines, joined)
	return machines, joined, err
}
