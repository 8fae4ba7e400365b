package local

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/cpulist"
	"github.com/muster-hpc/muster/internal/nodeset"
	"github.com/muster-hpc/muster/provider/local/network"
)

// Slice describes machines to be made from this host.
type Slice struct {
	Count  int
	Cores  int    // per machine; 0: share what is left evenly
	Memory int64  // bytes per machine; 0: share what is left evenly
	Class  string // "" is that of the set, else "local"
	Rack   string // "" is "local"
	// Set: machines of different sets are made of the same cores and memory, and exclude
	// each other. "": they have their own.
	Set string
	// Service marks machines that are meant for heads.
	Service bool
	// Chassis, Leaf and DataCentre are what they stand in; "": all are behind one switch.
	Chassis, Leaf, DataCentre string
}

// maxMachines is how many machines one host may have.
const maxMachines = 4096

// sliceForm is how the machines of --local are written.
const sliceForm = "N[,cores=C][,memory=8GiB][,class=NAME][,rack=NAME][,set=NAME][,leaf=NAME][,chassis=NAME][,datacentre=NAME][,service]"

// ParseSlice reads N[,cores=C][,memory=8GiB][,class=NAME][,rack=NAME][,set=NAME][,leaf=NAME][,chassis=NAME]
// [,datacentre=NAME][,service]. The error is EInvalid and lists everything that is wrong.
func ParseSlice(text string) (Slice, error) {
	var problems []muster.Problem
	wrong := func(hint, format string, args ...any) {
		problems = append(problems, muster.Problem{Field: fmt.Sprintf("machines %.80q", text), Reason: muster.ReasonBadMachines,
			Message: fmt.Sprintf(format, args...), Hint: hint})
	}
	parts := strings.Split(text, ",")
	n, err := strconv.Atoi(parts[0])
	if err != nil || n < 1 || n > maxMachines {
		wrong("begin with it: 4,cores=1,memory=2GiB", "the number of machines is from 1 to %d", maxMachines)
	}
	s := Slice{Count: n}
	seen := map[string]bool{}
	for _, p := range parts[1:] {
		key, value, _ := strings.Cut(p, "=")
		if seen[key] {
			wrong("keep one", "%.32q is given twice", key)
			continue
		}
		seen[key] = true
		if name := s.name(key); name != nil {
			if *name = value; key == "leaf" || key == "chassis" || key == "datacentre" {
				if !validStand(value) {
					wrong("use letters, digits, dots and underscores, at most 32", "%s %.40q is no name of one", key, value)
				}
			} else if !validName(value) {
				wrong("use small letters, digits and -, at most 32", "%s %.40q is no name of one", key, value)
			}
			continue
		}
		switch key {
		case "cores":
			if s.Cores, err = strconv.Atoi(value); err != nil || s.Cores < 1 || s.Cores > cpulist.Most {
				wrong("write cores=2, for instance", "cores %.40q is not a number from 1", value)
			}
		case "memory":
			if s.Memory, err = parseSize(value); err != nil {
				wrong("write memory=2GiB, for instance", "%v", err)
			}
		case "service":
			if value != "" {
				wrong("write service alone", "service takes no value")
			}
			s.Service = true
		default:
			wrong("write "+sliceForm, "there is no %.32q", key)
		}
	}
	if len(problems) > 0 {
		return Slice{}, muster.Errorf(muster.EInvalid, "the local machines have problems").Because(muster.ReasonHasProblems).Listing(problems)
	}
	return s, nil
}

// name is the field that a word of --local names something in; nil: it is another word.
func (s *Slice) name(key string) *string {
	switch key {
	case "class":
		return &s.Class
	case "rack":
		return &s.Rack
	case "set":
		return &s.Set
	case "leaf":
		return &s.Leaf
	case "chassis":
		return &s.Chassis
	case "datacentre":
		return &s.DataCentre
	}
	return nil
}

func validName(s string) bool {
	if s == "" || len(s) > 32 || s[0] == '-' {
		return false
	}
	for _, c := range s {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}

// validStand is for names of leaves, which have no dash: there is one between two of them in a link.
func validStand(s string) bool {
	if s == "" || len(s) > 32 || strings.Trim(s, "._") != s {
		return false
	}
	for _, c := range s {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '.' && c != '_' {
			return false
		}
	}
	return true
}

// MachinesOf are the names of the machines of each slice, as sets.
func MachinesOf(list []Slice) []string {
	out := make([]string, len(list))
	next := 0
	for i, s := range list {
		var names []string
		for range s.Count {
			names = append(names, string(machineID(next)))
			next++
		}
		out[i] = nodeset.Fold(names)
	}
	return out
}

// minMemory is the least with which a system starts.
const minMemory = 128 << 20

// parseSize reads 8GiB, 8G, 512MiB, 512M. Units are powers of 1024.
func parseSize(text string) (int64, error) {
	t := strings.TrimSuffix(strings.TrimSuffix(text, "B"), "i")
	shift := 0
	switch {
	case strings.HasSuffix(t, "T"):
		shift = 40
	case strings.HasSuffix(t, "G"):
		shift = 30
	case strings.HasSuffix(t, "M"):
		shift = 20
	default:
		return 0, fmt.Errorf("memory %q needs a unit: MiB, GiB or TiB", text)
	}
	n, err := strconv.ParseInt(t[:len(t)-1], 10, 64)
	if err != nil || n < 1 || n > 1<<62>>shift {
		return 0, fmt.Errorf("memory %q is not a size", text)
	}
	if n<<shift < minMemory {
		return 0, fmt.Errorf("memory %q is less than 128MiB", text)
	}
	return n << shift, nil
}

// layOut divides the host into machines.
func layOut(h *host, cfg *Config) ([]muster.Facts, error) {
	if err := checkSets(cfg.Slices); err != nil {
		return nil, err
	}
	setCores, setMemory := region(cfg.Slices)
	all, cores, memory := 0, setCores, setMemory // fixed demands
	shareC, shareM := 0, 0                       // machines that take an even share
	for _, s := range cfg.Slices {
		all += s.Count
		if s.Set != "" {
			continue
		}
		cores += s.Count * s.Cores
		memory += int64(s.Count) * s.Memory
		if s.Cores == 0 {
			shareC += s.Count
		}
		if s.Memory == 0 {
			shareM += s.Count
		}
	}
	usable := h.memory - cfg.reserve(h.memory)
	hint := "ask for fewer or smaller machines, or let them share with --oversubscribe"
	if all > maxMachines {
		return nil, muster.Errorf(muster.EInvalid, "%d local machines are more than %d", all, maxMachines).Because(muster.ReasonBadMachines)
	}
	over := false
	if cores+shareC > len(h.cpus) {
		over = true
		if !cfg.Oversubscribe {
			return nil, muster.Errorf(muster.EInvalid, "%d local machines need %d cores and this host has %d", all, cores+shareC, len(h.cpus)).Because(muster.ReasonBadMachines).WithHint("%s", hint)
		}
	}
	if memory+int64(shareM)*minMemory > usable {
		over = true
		if !cfg.Oversubscribe {
			return nil, muster.Errorf(muster.EInvalid, "%d local machines need %s of memory and this host can give %s", all,
				sizeText(memory+int64(shareM)*minMemory), sizeText(usable)).Because(muster.ReasonBadMachines).WithHint("%s", hint)
		}
	}
	if over && setCores > 0 {
		return nil, muster.Errorf(muster.EInvalid, "local machines of sets cannot share what they have with others").Because(muster.ReasonBadMachines).
			WithHint("ask for fewer or smaller machines: those of one set, with those of none, fit into this host")
	}
	eachC := 1
	if shareC > 0 {
		eachC = max(1, (len(h.cpus)-cores)/shareC)
	}
	eachM := int64(minMemory)
	if shareM > 0 {
		eachM = max(minMemory, (usable-memory)/int64(shareM)>>20<<20)
	}
	order := h.packed()
	var out []muster.Facts
	var extents []extent
	// The sets begin with the first core, so that a machine of theirs lies in one socket
	// wherever it fits.
	next, nextOf, memoryOf := setCores, map[string]int{}, map[string]int64{}
	for _, s := range cfg.Slices {
		for range s.Count {
			n, mem := s.Cores, s.Memory
			if n == 0 {
				n = eachC
			}
			if mem == 0 {
				mem = eachM
			}
			at := next
			if s.Set != "" {
				at = nextOf[s.Set]
				nextOf[s.Set] += n
				extents = append(extents, extent{memoryOf[s.Set], memoryOf[s.Set] + mem})
				memoryOf[s.Set] += mem
			} else {
				next += n
				extents = append(extents, extent{})
			}
			var mine []cpu
			for i := range min(n, len(order)) {
				mine = append(mine, order[(at+i)%len(order)])
			}
			out = append(out, h.slice(mine, mem, &s, over))
		}
	}
	shareOut(out, extents)
	return out, nil
}

// packed orders threads so that neighbours share a core, a memory node and a
// socket: a slice of consecutive ones lies close together.
func (h *host) packed() []cpu {
	return slices.SortedFunc(slices.Values(h.cpus), func(a, b cpu) int {
		for _, d := range [...]int{a.socket - b.socket, a.node - b.node, a.core - b.core} {
			if d != 0 {
				return d
			}
		}
		return a.id - b.id
	})
}

func (h *host) slice(cpus []cpu, memory int64, s *Slice, over bool) muster.Facts {
	f := muster.Facts{
		Architecture: h.arch, Processor: h.model, CPULevel: h.level, Memory: memory, Disk: memory / 2,
		Class: s.class(), Rack: s.Rack, Leaf: s.Leaf, Chassis: s.Chassis, Set: s.Set, Service: s.Service, Oversubscribed: over, Threads: len(cpus),
		NICs: []muster.NIC{
			{Name: network.ManagementLink, Kind: "veth", Use: "management"},
			{Name: network.MessageLink, Kind: "veth", Use: "message"},
		},
	}
	if f.Rack == "" {
		f.Rack = "local"
	}
	type at struct{ socket, core int }
	cores, sockets, nodes := map[at]bool{}, map[int]bool{}, map[int][]int{}
	for _, c := range cpus {
		f.CPUs = append(f.CPUs, c.id)
		cores[at{c.socket, c.core}] = true
		sockets[c.socket] = true
		nodes[c.node] = append(nodes[c.node], c.id)
	}
	slices.Sort(f.CPUs)
	f.Cores, f.Sockets = len(cores), len(sockets)
	for _, n := range h.numa {
		if mine := nodes[n.id]; len(mine) > 0 {
			slices.Sort(mine)
			f.NUMA = append(f.NUMA, muster.NUMA{ID: n.id, CPUs: mine, Memory: memory * int64(len(mine)) / int64(len(cpus))})
		}
	}
	return f
}

func sizeText(b int64) string {
	if b < 0 {
		b = 0
	}
	if b < 1<<30 {
		return fmt.Sprintf("%d MiB", b>>20)
	}
	return fmt.Sprintf("%.1f GiB", float64(b)/(1<<30))
}
