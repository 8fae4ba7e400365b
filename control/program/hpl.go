package program

import (
	"fmt"
	"strconv"

	"github.com/muster-hpc/muster"
)

// hplRun writes the input of HPL as its arguments say, N NB P Q, and runs it. Beside these it
// is what measures a cluster asks for: right-looking panels, a Crout recursion, the swap that
// mixes both ways.
const hplRun = `set -- {args}
[ $# = 4 ] || { echo "hpl needs four arguments: N NB P Q"; exit 64; }
printf '%s\n' HPL.dat 'written by Muster' HPL.out '6 output' '1 N' "$1" '1 NB' "$2" '0 by row' '1 grids' "$3" "$4" '16.0 threshold' \
  '1 fact' 2 '1 stop' 4 '1 div' 2 '1 recursion' 1 '1 broadcast' 1 '1 depth' 0 '2 swap' 64 '0 L1' '0 U' '1 equilibration' '8 alignment' >HPL.dat
mpirun -n {ranks} ` + Folder + `xhpl`

// hpl is HPL with its figure. It has no classes: its arguments are N, NB, P and Q.
func hpl() muster.Program {
	return muster.Program{
		Name: linpack, Builtin: true,
		ProgramSpec: muster.ProgramSpec{
			Run:   hplRun,
			Check: `\|\|Ax-b\|\|_oo.* PASSED`,
			Metric: &muster.ProgramMetric{Name: "Gflop/s", Unit: "Gflop/s", Better: muster.BetterHigher,
				Pattern: `^W[RC]\S+ +\d+ +\d+ +\d+ +\d+ +[0-9.]+ +([-+0-9.eE]+)`},
		},
	}
}

// checkHPL reports what is wrong with the arguments of HPL.
func checkHPL(args []string) *muster.Problem {
	bad := func(format string, args ...any) *muster.Problem {
		return &muster.Problem{Field: "args", Reason: muster.ReasonBadValue, Message: fmt.Sprintf(format, args...), Hint: "give N NB P Q, such as 10000 192 2 4, with P x Q ranks"}
	}
	if len(args) != 4 {
		return bad("hpl has four arguments, not %d", len(args))
	}
	for _, a := range args {
		if v, err := strconv.Atoi(a); err != nil || v < 1 || v > 1<<30 {
			return bad("%.20q is not a whole number from 1", a)
		}
	}
	return nil
}
