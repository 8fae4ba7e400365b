package muster

import (
	"net/netip"
	"time"
)

// Role of a node in its cluster.
type Role string

// Roles. A shared head is the first compute node with Head set.
const (
	RoleHead    Role = "head"    // separate head: takes no jobs
	RoleCompute Role = "compute" // takes jobs
	RoleLogin   Role = "login"   // people log in; takes no jobs
)

// Node is a named place in a cluster. A machine fills it; after a failure
// another machine fills the same node.
type Node struct {
	Cluster ClusterID `json:"cluster"`
	Name    string    `json:"name"`  // n01, n02, ... ; head for a separate head; login1, ... for login nodes
	Index   int       `json:"index"` // 0 is the node that carries the head
	Role    Role      `json:"role"`
	Head    bool      `json:"head,omitempty"` // login, slurmctld and shared storage are here
	Phase   NodePhase `json:"phase"`
	// Machine fills the node; "" when none does.
	Machine MachineID `json:"machine,omitempty"`
	// Attempt counts the boots of this node, from 1. A one-time token, a
	// report or an observation of another attempt is stale and ignored.
	Attempt int64 `json:"attempt"`
	// Address carries messages and belongs to the node.
	Address netip.Addr `json:"address,omitzero"`
	// Management reaches the machine and belongs to it.
	Management netip.Addr  `json:"management,omitzero"`
	Conditions []Condition `json:"conditions,omitempty"`
	// Trust is how much the agent's first exchange can be trusted.
	Trust Trust `json:"trust,omitempty"`

	PhaseSince time.Time `json:"phase_since,omitzero"`
	Deadline   time.Time `json:"deadline,omitzero"`
	// Failures counts the boots that failed since the node was last ready.
	Failures int `json:"failures,omitempty"`
	// Unconfigured are the machines on which the agent joined since then, and
	// could not make of the node what it should be: that follows the cluster.
	Unconfigured []MachineID `json:"unconfigured,omitempty"`
	// NotBefore holds the next boot back after a failure. Zero: at once.
	NotBefore time.Time `json:"not_before,omitzero"`
	// VM is how its machine is set up as a virtual machine in the present attempt; nil: it is none, or that was
	// not read back yet.
	VM *VMFacts `json:"vm,omitempty"`
	// Stages are the times of boot stages of the present attempt, in order.
	Stages []Stage `json:"stages,omitempty"`

	// Hold keeps the scheduler from using the node: it is not verified yet, or
	// waits for the others that join with it.
	Hold bool `json:"hold,omitempty"`
	// Leave: the node is to go; the scheduler gives it no new jobs.
	Leave bool `json:"leave,omitempty"`
	// Down: the machine that filled it is lost. The scheduler must give up what
	// ran there before a successor may speak in the node's name.
	Down bool `json:"down,omitempty"`
	// Repairs counts how often the node got another machine.
	Repairs int `json:"repairs,omitempty"`
	// PreviousMachine is the machine that the node lost last; "" when it never lost one.
	PreviousMachine MachineID `json:"was,omitempty"`
}

// Stage is one named moment of a boot: "kernel", "agent", "configured",
// "sshd", "scheduler".
type Stage struct {
	Name string    `json:"name"`
	At   time.Time `json:"at"`
}

// Trust says what vouched for a machine when its agent first spoke.
type Trust string

// Trusts, strongest first.
const (
	TrustTPM     Trust = "tpm"     // endorsement key enrolled at approval
	TrustLocal   Trust = "local"   // this host made the machine and handed it the token
	TrustPort    Trust = "port"    // switch port or DHCP option 82
	TrustNetwork Trust = "network" // only its address: anyone on that wire could have answered
)
