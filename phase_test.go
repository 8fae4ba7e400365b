package muster_test

import (
	"testing"

	"github.com/muster-hpc/muster"
)

// Every phase is reachable from the beginning and, unless it is final, has a
// way on: nobody gets stuck by the table itself.
func TestEveryClusterPhaseIsReachable(t *testing.T) {
	seen := map[muster.ClusterPhase]bool{}
	var walk func(p muster.ClusterPhase)
	walk = func(p muster.ClusterPhase) {
		for _, next := range muster.ClusterPhases() {
			if p != next && p.CanBecome(next) && !seen[next] {
				seen[next] = true
				walk(next)
			}
		}
	}
	walk("")
	for _, p := range muster.ClusterPhases() {
		if !seen[p] {
			t.Errorf("cluster phase %s cannot be reached", p)
		}
		if !p.Final() && p != muster.ClusterDeleting && !p.CanBecome(muster.ClusterDeleting) {
			t.Errorf("a %s cluster cannot be deleted", p)
		}
	}
}

func TestEveryPathToFreePassesCleaning(t *testing.T) {
	for _, p := range muster.MachinePhases() {
		if p != muster.MachineFree && p != muster.MachineCleaning && p.CanBecome(muster.MachineFree) {
			t.Errorf("%s -> free without cleaning", p)
		}
	}
}

// A node is given a machine when it begins, when its old machine is fenced, and
// when it comes back after it was gone, which it becomes only with its machine
// off.
func TestIdentityMovesOnlyFromFenced(t *testing.T) {
	for _, p := range muster.NodePhases() {
		switch p {
		case muster.NodeFenced, muster.NodeAssigned, muster.NodeGone:
			continue
		}
		if p.CanBecome(muster.NodeAssigned) {
			t.Errorf("a node may not be given another machine from %s", p)
		}
	}
}

func TestEveryNodePhaseCanEnd(t *testing.T) {
	for _, p := range muster.NodePhases() {
		switch p {
		case muster.NodeGone, muster.NodeDraining:
			continue
		}
		if !p.CanBecome(muster.NodeDraining) && !p.CanBecome(muster.NodeGone) {
			t.Errorf("a node that is %s can never leave", p)
		}
	}
}
