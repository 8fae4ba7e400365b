package allocate

import (
	"github.com/muster-hpc/muster"
)

// Purpose is what machines are needed for.
type Purpose string

// The purposes.
const (
	Create    Purpose = "create"    // a whole cluster, now
	Queue     Purpose = "queue"     // a whole cluster that has waited
	Scale     Purpose = "scale"     // more nodes for a cluster that has some
	Resume    Purpose = "resume"    // the machines of a paused cluster
	Repair    Purpose = "repair"    // another machine for one node
	Benchmark Purpose = "benchmark" // idle machines, to measure them
)

// Demand is what somebody needs machines for.
type Demand struct {
	Cluster muster.ClusterID
	Purpose Purpose
	// Spec says what the machines must be, how many there must be, and how they should
	// lie. Of Scale it is what admit.MoreNodes or admit.MoreLogins makes.
	Spec muster.Spec
	// Image is what they will run. Nil: nothing is known of it, and nothing is asked
	// for it.
	Image *muster.Image
	// Role is what the nodes of Scale are for.
	Role muster.Role
	// Near are the machines that the cluster of Scale has.
	Near []muster.Machine
	// Alternatives: look for changes of the request that bring an earlier start.
	Alternatives bool
	// As is what the cluster will be when the answer is carried out; nil: what it is.
	As *muster.Cluster
	// Only are the machines of a Benchmark: no others come into question.
	Only []muster.MachineID
}
