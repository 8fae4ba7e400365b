package hpl

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/muster-hpc/muster"
)

// Part is what a launch is for.
type Part string

// Parts, in their order.
const (
	First  Part = "first"  // how fast it is, roughly
	Split  Part = "split"  // ranks and threads
	Grid   Part = "grid"   // P and Q
	Block  Part = "block"  // NB
	Figure Part = "figure" // what counts
)

// Program is where the images have HPL.
const Program = "/usr/libexec/muster/xhpl"

// Run is one launch that is to be made: of Program, in a directory with the file
// HPL.dat, PerNode ranks on each node, each bound to Threads cores.
type Run struct {
	Part Part `json:"part"`
	muster.HPLSetting
	// Expected is how long it should take. Limit is when to give it up.
	Expected muster.Duration `json:"expected_seconds"`
	Limit    muster.Duration `json:"limit_seconds"`
}

// Ranks is how many there are in all.
func (r Run) Ranks() int { return r.P * r.Q }

// Environment are the variables that every rank must have: nothing but these tells
// a BLAS how many threads to use.
func (r Run) Environment() map[string]string {
	n := strconv.Itoa(r.Threads)
	return map[string]string{"OMP_NUM_THREADS": n, "OPENBLAS_NUM_THREADS": n, "MKL_NUM_THREADS": n, "BLIS_NUM_THREADS": n}
}

// Place are the arguments by which mpirun puts ranks where the run wants them. They
// are the same in Open MPI 4.1 and 5.0.
func (r Run) Place() []string {
	return []string{"--map-by", fmt.Sprintf("ppr:%d:node:PE=%d", r.PerNode, r.Threads), "--bind-to", "core"}
}

// alignment is in doubles.
const alignment = 8

// threshold is what the scaled residual must stay below.
const threshold = 16

// depth is how far panels are made ahead. One rank has nobody to wait for.
func depth(s muster.HPLSetting) int { return min(1, s.P*s.Q-1) }

// Dat is the text of HPL.dat. Beside size, blocks and grid it asks for what suits
// most machines: right-looking panels in a Crout recursion down to four columns,
// rings that let the next column go first, the swap that mixes both ways.
func (r Run) Dat() string {
	var b strings.Builder
	line := func(value any, what string) { fmt.Fprintf(&b, "%-12v %s\n", value, what) }
	b.WriteString("HPL.dat, the input of HPL\nwritten by Muster\n")
	line("HPL.out", "file of the output, where the next line does not say 6 or 7")
	line(6, "6: standard output")
	line(1, "how many N")
	line(r.N, "N, order of the matrix")
	line(1, "how many NB")
	line(r.NB, "NB, width of blocks")
	line(0, "ranks are laid out by row (0) or column (1)")
	line(1, "how many grids")
	line(r.P, "P, rows of ranks")
	line(r.Q, "Q, columns of ranks")
	line(fmt.Sprintf("%.1f", float64(threshold)), "what the scaled residual must stay below")
	line(1, "how many ways to factorize a panel")
	line(2, "left (0), Crout (1), right (2)")
	line(1, "how many ends of the recursion")
	line(4, "columns at which it ends")
	line(1, "how many divisions in the recursion")
	line(2, "parts in each step")
	line(1, "how many ways to recurse")
	line(1, "left (0), Crout (1), right (2)")
	line(1, "how many ways to send panels")
	line(1, "ring (0), its modification (1), two rings (2, 3), long (4, 5)")
	line(1, "how many depths")
	line(depth(r.HPLSetting), "panels that are made ahead")
	line(2, "swap: exchange (0), long (1), mixed (2)")
	line(64, "columns up to which the mixed swap exchanges")
	line(0, "L1 is transposed (0) or not (1)")
	line(0, "U is transposed (0) or not (1)")
	line(1, "equilibration")
	line(alignment, "alignment of memory in doubles")
	return b.String()
}
