package page

import (
	"slices"

	"github.com/muster-hpc/muster/internal/stat"
)

// middle is the median; 0 of nothing.
func middle(list []float64) float64 {
	list = finite(list...)
	if len(list) == 0 {
		return 0
	}
	return stat.Median(list)
}

// quarter is the value below which so many quarters of a list lie; 0 of nothing.
func quarter(list []float64, quarters int) float64 {
	list = finite(list...)
	if len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	return list[(len(list)-1)*quarters/4]
}
