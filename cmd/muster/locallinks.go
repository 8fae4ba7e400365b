package main

import (
	"errors"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/topology"
	"github.com/muster-hpc/muster/daemon"
	"github.com/muster-hpc/muster/provider/local"
)

// readLocal reads the machines that are slices of this host and the links between what they stand in. Of links
// everything that is wrong is told at once.
func readLocal(slices, links []string) (machines []local.Slice, joined []topology.Link, err error) {
	for _, text := range slices {
		s, err := local.ParseSlice(text)
		if err != nil {
			return nil, nil, err
		}
		machines = append(machines, s)
	}
	var problems []muster.Problem
	for _, text := range links {
		l, err := topology.ParseLink(text)
		var e *muster.Error
		if errors.As(err, &e) {
			problems = append(problems, e.Problems...)
			continue
		}
		joined = append(joined, l)
	}
	if len(problems) > 0 {
		return nil, nil, muster.Errorf(muster.EInvalid, "the links of local machines have problems").Because(muster.ReasonHasProblems).Listing(problems)
	}
	_, err = daemon.LocalTree(machines, joined)
	return machines, joined, err
}
