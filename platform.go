package muster

import "time"

// Platform is a cluster that is not Muster's, as a script of ours found it: figures of
// programs, and the conditions. Muster did not measure it, and vouches for nothing of it.
type Platform struct {
	Name    string    `json:"name"`
	Project string    `json:"project"`
	Owner   string    `json:"owner"`
	Created time.Time `json:"created"`
	// Began is when its first launch was.
	Began time.Time `json:"began"`
	// Kit is the digest of the script and of the programs' sources.
	Kit string `json:"kit"`
	// Launcher started ranks: a command with {ranks} in it.
	Launcher string `json:"launcher,omitempty"`
	Compiler string `json:"compiler,omitempty"`
	Flags    string `json:"flags,omitempty"` // of the compiler
	MPI      string `json:"mpi,omitempty"`
	// Nodes are what ran the programs; alike ones are one entry.
	Nodes []PlatformNodes `json:"nodes"`
	// Layouts are how ranks were placed, by their number.
	Layouts  []PlatformLayout `json:"layouts"`
	Launches []PlatformLaunch `json:"launches"`
}

// PlatformNodes are nodes of a platform that have everything but their names in common.
type PlatformNodes struct {
	Names          string `json:"names"` // folded: n[01-16]
	Processor      string `json:"processor,omitempty"`
	Sockets        int    `json:"sockets,omitempty"`
	Cores          int    `json:"cores,omitempty"` // that the ranks could use
	Memory         int64  `json:"memory_bytes,omitempty"`
	Kernel         string `json:"kernel,omitempty"`
	Governor       string `json:"governor,omitempty"`
	Virtualization string `json:"virtualization,omitempty"`
	// NIC is the network card whose socket got ranks first, NICCell its memory cell. Nil: not
	// known.
	NIC     string `json:"nic,omitempty"`
	NICCell *int   `json:"nic_cell,omitempty"`
}

// PlatformLayout is how so many ranks were placed.
type PlatformLayout struct {
	Ranks int `json:"ranks"`
	Nodes int `json:"nodes"`
	// Bound counts the ranks that had a core of their own, Near those of them on the socket of
	// the network card. Nil: the socket is not known.
	Bound int  `json:"bound"`
	Near  *int `json:"near,omitempty"`
}

// PlatformLaunch is one run of a program on a platform.
type PlatformLaunch struct {
	Program string    `json:"program"`
	Class   string    `json:"class"`
	Ranks   int       `json:"ranks"`
	Round   int       `json:"round"`
	Began   time.Time `json:"began"`
	// Load is the load average of the first node just before.
	Load   float64 `json:"load"`
	Wall   float64 `json:"wall_seconds"`
	Status int     `json:"status"` // of the launcher
	// Verified reports whether the program found its result right. Seconds are its timed part,
	// Mops its figure, in millions of operations a second. Zero where it printed none.
	Verified bool    `json:"verified"`
	Seconds  float64 `json:"seconds,omitempty"`
	Mops     float64 `json:"mops,omitempty"`
	// Message is the last line of what it wrote to its standard error.
	Message string `json:"message,omitempty"`
}

// Counts reports whether the figure of a launch is one: it ended well, and its result is right.
func (l PlatformLaunch) Counts() bool { return l.Status == 0 && l.Verified && l.Mops > 0 }
