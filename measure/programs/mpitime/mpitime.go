// Package mpitime carries the source of a library that measures from MPI_Init to MPI_Finalize
// of programs that know nothing of it, with any MPI.
package mpitime

import (
	"embed"
	"io/fs"
)

//go:embed Makefile src
var source embed.FS

// Source is the Makefile and the directory src.
func Source() fs.FS { return source }
