package muster

import (
	"regexp"
	"time"
)

// ProgramRunID names a run of a program for ever: "pr-" and ten characters.
type ProgramRunID string

// NewProgramRunID makes a fresh ID of a run.
func NewProgramRunID() ProgramRunID { return ProgramRunID("pr-" + RandomID(10)) }

var programRunID = regexp.MustCompile(`^pr-[0-9a-z]{10}$`)

// Valid reports whether the ID has the form of one.
func (id ProgramRunID) Valid() bool { return programRunID.MatchString(string(id)) }

// ProgramRunState is what became of a run.
type ProgramRunState string

// States of runs.
const (
	ProgramRunOpen   ProgramRunState = "open"   // its job waits or runs, or nobody has read its end yet
	ProgramRunPassed ProgramRunState = "passed" // it exited with 0, and the check holds
	ProgramRunFailed ProgramRunState = "failed" // Problem says why
)

// ProgramRun is one run of a program on a cluster: the factors, the conditions, the figures.
type ProgramRun struct {
	ID      ProgramRunID `json:"id"`
	Program string       `json:"program"`
	Project string       `json:"project"`
	// By is who ran it.
	By          string    `json:"by"`
	Cluster     ClusterID `json:"cluster"`
	ClusterName string    `json:"cluster_name"`
	// Version is that of the program with its arguments, Spec what the program was.
	Version string      `json:"version"`
	Spec    ProgramSpec `json:"spec"`
	Args    []string    `json:"args,omitempty"`
	// Class is the size of the problem, where the program has such. Ranks of MPI are spread
	// over so many nodes, with at most RanksPerNode on each.
	Class string `json:"class,omitempty"`
	// Stack is what it was built with and ran in: a compiler, an MPI and a BLAS, as the image
	// has them under one name. Empty: the image's own.
	Stack        string   `json:"stack,omitempty"`
	Ranks        int      `json:"ranks"`
	NodeCount    int      `json:"node_count"`
	RanksPerNode int      `json:"ranks_per_node"`
	Timeout      Duration `json:"timeout_seconds"`
	// Settings are how its processes began, and Experiment is of which it is a launch.
	Settings   RunSettings  `json:"settings,omitzero"`
	Experiment ExperimentID `json:"experiment,omitempty"`

	State     ProgramRunState `json:"state"`
	Submitted time.Time       `json:"submitted"`
	Ended     time.Time       `json:"ended,omitzero"`
	// Nodes are those that the scheduler chose, Machines what filled them at the end.
	Nodes    []string    `json:"nodes,omitempty"`
	Machines []MachineID `json:"machines,omitempty"`
	// Exit is the status of the program. Nil: it had none.
	Exit *int `json:"exit,omitempty"`
	// Checked reports whether the check holds. Nil: there is none, or nothing to look at.
	Checked *bool `json:"checked,omitempty"`
	// Problem is why it failed.
	Problem string `json:"problem,omitempty"`
	// Lost: its cluster was deleted before anybody read what became of it.
	Lost bool `json:"lost,omitempty"`
	// Figure is what runs are compared by: the program's own, or else its wall time.
	Figure *ProgramFigure `json:"figure,omitempty"`
	// MPI is the time from MPI_Init to MPI_Finalize, summed over the MPI jobs of the run. 0: none
	// ran, or the image cannot measure it.
	MPI float64 `json:"mpi_seconds,omitempty"`
	// Wall is how long the run command took, Build the build command.
	Wall  float64 `json:"wall_seconds,omitempty"`
	Build float64 `json:"build_seconds,omitempty"`
	// Use is how it used the processors and the network. Nil: nobody looked, or could not.
	Use *ProgramUse `json:"use,omitempty"`
	// UseSeries is how busy the processors were in each second while it ran: of each node, or of
	// many nodes the mean, under the names of all. Lists of runs leave it out.
	UseSeries []UseSeries `json:"use_series,omitempty"`
	// Conditions are what is on record of the machines and of the image.
	Conditions TestEnvironment `json:"conditions"`
	// Output is the end of what a run that failed printed.
	Output string `json:"output,omitempty"`
}

// FigureSource is where the figure of a run is from.
type FigureSource string

// Sources of figures.
const (
	FigureOfProgram FigureSource = "program" // the program printed it
	FigureOfMPI     FigureSource = "mpi"     // the time from MPI_Init to MPI_Finalize
	FigureOfWall    FigureSource = "wall"    // the time that its command took
)

// ProgramFigure is one number of a run.
type ProgramFigure struct {
	Name   string       `json:"name"`
	Unit   string       `json:"unit"`
	Value  float64      `json:"value"`
	Better Better       `json:"better"`
	Source FigureSource `json:"source"`
}
