package wire

import "github.com/muster-hpc/muster"

// ProgramRequest adds a program to a project.
type ProgramRequest struct {
	Name    string   `json:"name" maxLength:"64"`
	Project string   `json:"project,omitempty" maxLength:"64" doc:"Left out: the caller's only one"`
	Image   string   `json:"image" maxLength:"256" doc:"Name of the image that it runs in"`
	Build   string   `json:"build,omitempty" doc:"Command that builds it, in the folder in which it runs"`
	Run     string   `json:"run" doc:"Command that runs it, with placeholders such as {ranks}"`
	Check   string   `json:"check,omitempty" doc:"Pattern (RE2) that must match in the output"`
	Metric  string   `json:"metric,omitempty" doc:"NAME (UNIT): PATTERN, with one group that is a number"`
	Better  string   `json:"better,omitempty" maxLength:"32" doc:"Which figures of the metric are better: higher or lower"`
	Inputs  []string `json:"inputs,omitempty" doc:"Names of volumes that it reads"`
}

// Program is a program as a client sees it.
type Program struct {
	muster.Program
	// Version is that of a run without arguments; empty for built-in programs, whose image is
	// the cluster's.
	Version string `json:"version,omitempty"`
}

// ProgramList is every program that the caller can run.
type ProgramList struct {
	Programs []Program `json:"programs"`
	More
}

// RunRequest runs a program on a cluster.
type RunRequest struct {
	Program string   `json:"program" maxLength:"128" doc:"Name, or PROJECT/NAME"`
	Class   string   `json:"class,omitempty" maxLength:"64" doc:"Size of the problem, where the program has such"`
	Stack   string   `json:"stack,omitempty" maxLength:"64" doc:"Compiler, MPI and BLAS of the image to build and run with, such as gcc-mpich-blis"`
	Ranks   int      `json:"ranks,omitempty" minimum:"0" doc:"Ranks of MPI; left out: one for each core"`
	Nodes   int      `json:"nodes,omitempty" minimum:"0" doc:"Nodes to use; left out: as few as hold the ranks"`
	Timeout string   `json:"timeout,omitempty" maxLength:"32" doc:"When it is ended, from its start; left out: 10m"`
	Args    []string `json:"args,omitempty" doc:"What {args} stands for"`
	// PerNode is how many ranks a node has, in place of Nodes.
	PerNode int `json:"per_node,omitempty" minimum:"0" doc:"Ranks of a node; left out: as many as it holds"`
	// Settings are how the processes begin.
	Settings muster.RunSettings `json:"settings,omitzero" doc:"Threads, binding and environment"`
	User     string             `json:"user,omitempty" maxLength:"64" doc:"As which user of the cluster; only for administrators"`
}

// ProgramJob is a run with the scripts that submit its job, look at it, end it and clear it
// away. They are for bash on the head of the cluster, as the user who runs it.
type ProgramJob struct {
	Run    muster.ProgramRun `json:"run"`
	Submit string            `json:"submit,omitempty" doc:"Only of a run that was just started"`
	Look   string            `json:"look"`
	Cancel string            `json:"cancel"`
	Clear  string            `json:"clear"`
}

// RunReport is what a script of a job printed.
type RunReport struct {
	Looked []byte `json:"looked,omitempty" doc:"What look printed, in base64"`
	// Refused is what submit said when it failed: the run ends with it.
	Refused string `json:"refused,omitempty" maxLength:"4096" doc:"What submit printed when it failed"`
}

// RunProgress is how far a run is.
type RunProgress struct {
	Run muster.ProgramRun `json:"run"`
	// Text is a line for people who wait.
	Text string `json:"text"`
}

// ProgramRunList are runs of programs, the newest first.
type ProgramRunList struct {
	Runs []muster.ProgramRun `json:"runs"`
	More
}

// RunQuery narrows a list of runs.
type RunQuery struct {
	Program string // name, or PROJECT/NAME; "": of all
	Cluster string // name or ID; "": on all
	Page
}
