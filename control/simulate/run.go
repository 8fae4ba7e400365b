package simulate

import (
	"github.com/muster-hpc/muster"
)

// Policies are those that Run knows.
func Policies() []string { return []string{"fifo", "easy", "muster"} }

// Run lets a workload run by a policy. The same workload has the same result.
func Run(w Workload, policy string) (Result, error) {
	switch policy {
	case "fifo":
		return counted(w, false), nil
	case "easy":
		return counted(w, true), nil
	case "muster":
		return byCalendar(w, nil), nil
	}
	return Result{}, muster.Errorf(muster.EInvalid, "there is no policy %.32q", policy).Because(muster.ReasonBadValue).WithHint("fifo, easy or muster")
}
