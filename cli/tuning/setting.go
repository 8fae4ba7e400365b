package tuning

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Setting is one level of one factor, or several of different factors together. The zero value is
// everything as it is by default.
type Setting struct {
	// Levels are what is set, by factor, for people.
	Levels map[string]string `json:"levels,omitempty"`
	// Env are variables of the environment.
	Env map[string]string `json:"env,omitempty"`
	// PerNode is how many ranks a node has. 0: as many as it has cores.
	PerNode int `json:"ranks_per_node,omitempty"`
}

// Left is a factor, or a part of one, that is not varied.
type Left struct {
	Factor string `json:"factor"`
	Why    string `json:"why"`
}

// Name is a setting in one line.
func (s Setting) Name() string {
	var words []string
	for _, f := range Factors() {
		if v, ok := s.Levels[f]; ok {
			words = append(words, f+"="+v)
		}
	}
	if len(words) == 0 {
		return "default"
	}
	return strings.Join(words, " ")
}

// Key is the same for settings that do the same.
func (s Setting) Key() string {
	words := []string{strconv.Itoa(s.PerNode)}
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		words = append(words, name+"="+s.Env[name])
	}
	return strings.Join(words, "\x00")
}

// Together is what settings of different factors are when all are set.
func Together(list ...Setting) Setting {
	all := Setting{Levels: map[string]string{}, Env: map[string]string{}}
	for _, s := range list {
		maps.Copy(all.Levels, s.Levels)
		maps.Copy(all.Env, s.Env)
		if s.PerNode > 0 {
			all.PerNode = s.PerNode
		}
	}
	return all
}

// Factors are all factors, the ones that usually matter most first: where the launches do not
// suffice for all, the last ones are left out.
func Factors() []string {
	return []string{"binding", "transport", "eager", "memory", "ranks", "collective", "buffers"}
}

// Space is what can be varied on a cluster, by factor in the order of Factors, and what not.
// Only those factors are looked at that are named; none: all.
func Space(a Abilities, only []string) (list []Setting, left []Left) {
	for _, f := range Factors() {
		if len(only) > 0 && !slices.Contains(only, f) {
			continue
		}
		levels, why := levelsOf(f, a)
		list = append(list, levels...)
		if why != "" {
			left = append(left, Left{f, why})
		}
	}
	return list, left
}

// one is a setting of one factor by parameters of Open MPI, in pairs of name and value.
func one(factor, level string, params ...string) Setting {
	s := Setting{Levels: map[string]string{factor: level}, Env: map[string]string{}}
	for i := 0; i+1 < len(params); i += 2 {
		s.Env["OMPI_MCA_"+params[i]] = params[i+1]
	}
	return s
}

// levelsOf are the levels of a factor, and why there are none, or not all.
func levelsOf(factor string, a Abilities) (list []Setting, why string) {
	if factor == "ranks" {
		switch {
		case !a.FreeRanks:
			return nil, "the number of ranks is given, or the program does not use {ranks}"
		case a.Cores < 2:
			return nil, "a node has one core"
		}
		return []Setting{{Levels: map[string]string{factor: fmt.Sprintf("%d-per-node", a.Cores-1)}, PerNode: a.Cores - 1}}, ""
	}
	if a.OpenMPI == "" {
		return nil, "the image has no Open MPI"
	}
	far := a.Nodes > 1 && a.Has("btl:tcp") // messages may go over TCP
	switch factor {
	case "binding":
		return bindings(a)
	case "memory":
		if a.Cells < 2 {
			return nil, "a node shows one memory node"
		}
		// Beside the kernel's own way: pages lie where they are touched first, as long as there is room.
		return []Setting{one(factor, "local-only", "hwloc_base_mem_alloc_policy", "local_only")}, ""
	case "transport":
		return transports(a, far)
	case "eager":
		return eager(a, far)
	case "buffers":
		if !far {
			return nil, notFar(a)
		}
		for _, size := range []int{256 << 10, 4 << 20} {
			n := strconv.Itoa(size)
			list = append(list, one(factor, n, "btl_tcp_sndbuf", n, "btl_tcp_rcvbuf", n))
		}
		return list, ""
	default: // collective
		if a.Nodes*a.Cores < 3 {
			return nil, "there are fewer than three ranks"
		}
		for _, algorithm := range [][2]string{{"recursive-doubling", "3"}, {"ring", "4"}} {
			list = append(list, one(factor, "allreduce-"+algorithm[0], "coll_tuned_use_dynamic_rules", "1", "coll_tuned_allreduce_algorithm", algorithm[1]))
		}
		return list, ""
	}
}

func notFar(a Abilities) string {
	if a.Nodes > 1 {
		return "Open MPI has no TCP"
	}
	return "a launch uses one node"
}

// bindings are set by the launcher of MPI, whose name for them changed with release 5. The scheduler's own
// affinity is left as it is: it cannot be set in slices of a host.
func bindings(a Abilities) (list []Setting, why string) {
	if a.Cores < 2 {
		return nil, "a node has one core"
	}
	names := [][2]string{{"none", "none"}, {"core", "core"}}
	if a.Sockets > 1 {
		names = append(names, [2]string{"socket", "package"})
	} else {
		why = "not to sockets: a node has one"
	}
	for _, n := range names {
		s := one("binding", n[0], "hwloc_base_binding_policy", n[0])
		s.Env["PRTE_MCA_hwloc_default_binding_policy"] = n[1]
		list = append(list, s)
	}
	return list, why
}

func transports(a Abilities, far bool) (list []Setting, why string) {
	shared := "sm"
	if a.Has("btl:vader") {
		shared = "vader"
	}
	if far {
		list = append(list, one("transport", "ob1-tcp", "pml", "ob1", "btl", "self,tcp"))
		if a.Has("btl:" + shared) {
			list = append(list, one("transport", "ob1-"+shared+"-tcp", "pml", "ob1", "btl", "self,"+shared+",tcp"))
		}
	} else if a.Nodes == 1 && a.Has("btl:"+shared) {
		list = append(list, one("transport", "ob1-"+shared, "pml", "ob1", "btl", "self,"+shared))
	}
	if !a.Has("pml:ucx") {
		return list, "not UCX: Open MPI was built without it"
	}
	// Open MPI takes UCX for InfiniBand only, also where it is named, unless anything will do. The names of
	// that setting are those of releases 4 and 5.
	return append(list, one("transport", "ucx", "pml", "ucx", "pml_ucx_tls", "any", "pml_ucx_devices", "any", "opal_common_ucx_tls", "any", "opal_common_ucx_devices", "any")), ""
}

// eager are the sizes up to which a message is sent at once, without asking the receiver.
func eager(a Abilities, far bool) (list []Setting, why string) {
	ucx := a.Has("pml:ucx")
	if !far && !ucx {
		return nil, notFar(a)
	}
	for _, size := range []int{16 << 10, 128 << 10, 1 << 20} {
		n := strconv.Itoa(size)
		s := Setting{Levels: map[string]string{"eager": n}, Env: map[string]string{}}
		if far {
			// A message that is sent at once is one fragment: the largest has to hold it.
			s = one("eager", n, "btl_tcp_eager_limit", n, "btl_tcp_max_send_size", strconv.Itoa(max(size, 128<<10)))
		}
		if ucx {
			s.Env["UCX_RNDV_THRESH"] = n
		}
		list = append(list, s)
	}
	return list, ""
}
