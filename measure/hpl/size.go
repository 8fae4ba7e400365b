package hpl

import (
	"math"
	"sort"
	"time"

	"github.com/muster-hpc/muster"
)

// What a rank and each of its threads need beside the matrix: MPI, the BLAS's
// buffers, code. Measured with Open MPI and OpenBLAS, rounded up.
const (
	rankBytes   = 64 << 20
	threadBytes = 32 << 20
)

// elementTime is how long one rank takes to make one element of the matrix. HPL
// makes it twice: for solving, and for the check. Neither is in its time, both are
// in ours. Measured: 45 ns.
const elementTime = 60e-9

// mostN keeps all of HPL's counters in range.
const mostN = 10_000_000

// Flops is the work that HPL counts for a matrix of order n.
func Flops(n int) float64 {
	x := float64(n)
	return x * x * (2*x/3 + 1.5)
}

// Need is how many bytes a setting takes on a node at most: the blocks of the
// matrix that its ranks have, the panels in work, and what else a rank has.
func Need(s muster.HPLSetting) int64 {
	part := func(n int64) int64 { // the largest share of the matrix in one dimension
		blocks := (int64(s.N) + int64(s.NB) - 1) / int64(s.NB)
		return min(int64(s.N), (blocks+n-1)/n*int64(s.NB))
	}
	rows, columns, nb := part(int64(s.P))+2*alignment, part(int64(s.Q))+1, int64(s.NB)
	panels := (int64(depth(s))+2)*(rows+2*nb)*nb + 3*nb*columns
	rank := 8*(rows*columns+panels) + rankBytes + int64(s.Threads)*threadBytes
	return int64(s.PerNode) * rank
}

// fits is the largest order, a multiple of the width of blocks, that a setting
// leaves room for; 0 if there is none.
func (s Site) fits(at muster.HPLSetting) int {
	return largest(at.NB, func(n int) bool {
		at.N = n
		return Need(at) <= s.allowed()
	})
}

// takes is how long a launch is expected to take at a rate.
func (s Site) takes(at muster.HPLSetting, rate float64) time.Duration {
	elements := 2 * float64(at.N) * float64(at.N) * elementTime / float64(at.P*at.Q)
	return s.Start + seconds(Flops(at.N)/rate+elements)
}

// lasts is the largest order that is expected to take no longer than most; 0 if
// there is none.
func (s Site) lasts(at muster.HPLSetting, rate float64, most time.Duration) int {
	return largest(at.NB, func(n int) bool {
		at.N = n
		return s.takes(at, rate) <= most
	})
}

// largest is the largest multiple of step that is good, where all below a good one
// are good.
func largest(step int, good func(n int) bool) int {
	return step * (sort.Search(mostN/step, func(i int) bool { return !good((i + 1) * step) }))
}

// seconds does not overflow: what takes years takes years.
func seconds(s float64) time.Duration {
	const most = 100 * 365 * 24 * time.Hour
	if !(s < most.Seconds()) {
		return most
	}
	return time.Duration(math.Ceil(s * float64(time.Second)))
}
