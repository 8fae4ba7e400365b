package nfs

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"

	"github.com/muster-hpc/muster/internal/atomicfile"
	"github.com/muster-hpc/muster/internal/document"
)

// state is what is wanted, with the number that each export has. The number is part
// of every file handle: an export keeps it, also when it is not wanted for a while, for virtual machines that are saved have
// handles in their memory. The numbers of those that are gone come last again.
type state struct {
	Exports []Export          `json:"exports"`
	Numbers map[string]uint16 `json:"numbers"` // by name
	Last    uint16            `json:"last"`    // that was given
}

const stateDoc document.Kind[state] = "exports/1"

// maxExports leaves most numbers unused, so that none comes again soon.
const maxExports = 16_000

// maxNumbers is how many numbers are kept, those of exports that are gone among them.
const maxNumbers = 32_000

// want makes the set the wanted one, and gives numbers.
func (s state) want(set []Export) (state, error) {
	if len(set) > maxExports {
		return state{}, fmt.Errorf("%d exports are more than %d", len(set), maxExports)
	}
	out := state{Exports: set, Numbers: maps.Clone(s.Numbers), Last: s.Last}
	if out.Numbers == nil {
		out.Numbers = make(map[string]uint16, len(set))
	}
	owner := make(map[uint16]string, len(out.Numbers))
	for name, n := range out.Numbers {
		owner[n] = name
	}
	wanted := make(map[string]bool, len(set))
	for _, e := range set {
		wanted[e.Name] = true
	}
	// taken: of two that are gone the one whose number was given before is forgotten first.
	taken := func(n uint16) bool {
		name, has := owner[n]
		return n == 0 || has && (wanted[name] || len(out.Numbers) < maxNumbers) // 0 is the root that shows names
	}
	for _, e := range set {
		if _, ok := out.Numbers[e.Name]; ok {
			continue
		}
		for out.Last++; taken(out.Last); {
			out.Last++
		}
		delete(out.Numbers, owner[out.Last])
		out.Numbers[e.Name] = out.Last
		owner[out.Last] = e.Name
	}
	return out, nil
}

func readState(path string) (state, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return state{}, nil
	}
	if err != nil {
		return state{}, err
	}
	return parseState(b)
}

func parseState(b []byte) (state, error) {
	s, err := stateDoc.Decode("exports.json", b)
	if err != nil {
		return state{}, err
	}
	used := map[uint16]bool{}
	for _, e := range s.Exports {
		n := s.Numbers[e.Name]
		if err := e.check(); err != nil {
			return state{}, err
		}
		if n == 0 || used[n] {
			return state{}, fmt.Errorf("export %s has no number of its own", e.Name)
		}
		used[n] = true
	}
	return s, nil
}

func (s state) write(path string) error {
	b, err := stateDoc.Encode(&s)
	if err != nil {
		return err
	}
	return atomicfile.Replace(path, append(b, '\n'), 0o600)
}
