package tuning

import (
	"bytes"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Abilities are what decides which settings can be varied.
type Abilities struct {
	// Nodes are those that a launch uses, and Cores is how many each has.
	Nodes, Cores int
	// FreeRanks: the number of ranks is for the search to choose.
	FreeRanks bool

	// Cells are the memory nodes, and Sockets the sockets, that the cores of a node are near to.
	Cells, Sockets int
	// OpenMPI is the release of Open MPI; empty: there is none.
	OpenMPI string
	// Components are those of Open MPI, such as "btl:tcp".
	Components []string
}

// Has reports whether Open MPI has a component.
func (a Abilities) Has(name string) bool { return slices.Contains(a.Components, name) }

// Probe is a script for bash, for a compute node, which prints what Read reads.
const Probe = `export LC_ALL=C
cpus=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)
near() {
	local part n file
	for part in ${cpus//,/ }; do
		for ((n = ${part%-*}; n <= ${part#*-}; n++)); do
			for file in /sys/devices/system/cpu/cpu$n/$1; do
				[ -e "$file" ] || continue
				if [ -d "$file" ]; then echo "${file##*/}"; else cat "$file"; fi
			done
		done
	done | sort -u | wc -l
}
echo "tune cells $(near 'node[0-9]*')"
echo "tune sockets $(near topology/physical_package_id)"
command -v ompi_info >/dev/null || { echo "tune end"; exit 0; }
ompi_info --all --parsable 2>/dev/null </dev/null | awk -F: '
	$1 == "ompi" && $2 == "version" && $3 == "full" { print "tune mpi " $4 }
	$1 == "mca" && ($2 == "btl" || $2 == "pml") && $4 == "version" && !seen[$2 ":" $3]++ { print "tune component " $2 ":" $3 }'
echo "tune end"
`

const mostComponents = 200

var (
	componentForm = regexp.MustCompile(`^(btl|pml):[a-z][a-z0-9_]{0,39}$`)
	releaseForm   = regexp.MustCompile(`^[0-9][0-9A-Za-z.+~-]{0,39}$`)
)

// ErrUnreadable is what a node prints that is not the end of the probe's.
var ErrUnreadable = errors.New("tuning: what the node printed cannot be read")

// Read reads what the probe printed. Lines of others, such as greetings of a shell, are left out.
func Read(out []byte) (Abilities, error) {
	a := Abilities{}
	for line := range bytes.Lines(out) {
		w := strings.Fields(string(line))
		if len(w) < 2 || w[0] != "tune" {
			continue
		}
		if w[1] == "end" && len(w) == 2 {
			return a, nil
		}
		if len(w) != 3 {
			return Abilities{}, ErrUnreadable
		}
		n, err := strconv.Atoi(w[2])
		number := err == nil && n >= 0 && n <= 1<<16
		switch {
		case w[1] == "cells" && number:
			a.Cells = n
		case w[1] == "sockets" && number:
			a.Sockets = n
		case w[1] == "mpi" && releaseForm.MatchString(w[2]):
			a.OpenMPI = w[2]
		case w[1] == "component" && componentForm.MatchString(w[2]) && len(a.Components) < mostComponents:
			a.Components = append(a.Components, w[2])
		default:
			return Abilities{}, ErrUnreadable
		}
	}
	return Abilities{}, ErrUnreadable
}
