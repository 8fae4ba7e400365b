// Package apps carries the source of the applications that show how a cluster computes:
// LU, SP and BT of the NAS parallel benchmarks, a farm of tasks, and a lattice. They are
// compiled with the MPI of the cluster; see docs/internals/applications.md.
package apps

import (
	"embed"
	"io/fs"
)

//go:embed Makefile src
var source embed.FS

// Source is the Makefile and the directory src.
func Source() fs.FS { return source }
