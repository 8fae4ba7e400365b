package muster

import (
	"reflect"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// TestEnvironment are the conditions under which something was measured:
// everything that changes a figure. Two figures may be compared only as far as
// these are alike. What could not be found out is left out.
type TestEnvironment struct {
	Provider  string `json:"provider,omitempty"`
	Processor string `json:"processor,omitempty"` // model name
	Sockets   int    `json:"sockets,omitempty"`
	Cores     int    `json:"cores,omitempty"`        // physical cores that the node may use
	Threads   int    `json:"threads,omitempty"`      // hardware threads that it may use
	Memory    int64  `json:"memory_bytes,omitempty"` // bytes
	NUMA      []NUMA `json:"numa,omitempty"`
	// Shape is the part of its machine that the node had; nil: all of it.
	Shape *Shape `json:"shape,omitempty"`
	// LinkRate is what its links for messages were held to, in bits/s; 0: nothing.
	LinkRate int64 `json:"link_rate_bps,omitempty"`
	// Topology is how these are built together.
	Topology *Topology `json:"topology,omitempty"`
	// Cache is the last-level cache in bytes.
	Cache int64           `json:"cache_bytes,omitempty"`
	Clock *ProcessorClock `json:"clock,omitempty"`
	// Pages is the state of huge pages.
	Pages *HugePages `json:"huge_pages,omitempty"`
	// Virtualization is what runs the node: none, container, kvm, ... Under a
	// container's kernel there may be a Hypervisor.
	Virtualization string `json:"virtualization,omitempty"`
	Hypervisor     string `json:"hypervisor,omitempty"`
	// VM is how the node is set up as a virtual machine, by its host's word, and VMSettings what was read
	// back of each setting; of single nodes only.
	VM         *VMCondition `json:"vm,omitempty"`
	VMSettings []VMFact     `json:"vm_settings,omitempty"`
	// Steal is the share of the time of its processors that a virtual machine waited for one of the host's, while
	// it was measured; of single nodes only.
	Steal *float64 `json:"steal,omitempty"`
	// Flags are the processor's flags that speed depends on.
	Flags  []string `json:"flags,omitempty"`
	Kernel string   `json:"kernel,omitempty"`
	// Options are the parameters of the kernel's command line that speed depends on.
	Options []string `json:"kernel_options,omitempty"`
	// ClockSource is what the kernel takes the time from.
	ClockSource string `json:"clock_source,omitempty"`
	// Firmware is its vendor, version and date; Microcode the processors' revision.
	Firmware  string `json:"firmware,omitempty"`
	Microcode string `json:"microcode,omitempty"`
	// SMT is whether cores show as several hardware threads: on, off, forceoff,
	// notsupported, as the kernel says.
	SMT string `json:"smt,omitempty"`
	// MTU are the network interfaces that are up with the largest packet that they
	// send, in bytes: "msg0 9000".
	MTU []string `json:"mtu,omitempty"`
	// Image is the content that the node booted. Of a cluster it stands above.
	Image ImageID `json:"image,omitempty"`
	// BLAS is the library that was really mapped.
	BLAS *Library `json:"blas,omitempty"`
	// MPI is the library's word on itself, and Transport what really carried
	// the messages between nodes.
	MPI       string `json:"mpi,omitempty"`
	Transport string `json:"transport,omitempty"`
	// Pinning is what processors each rank could use, as the kernel said.
	Pinning string `json:"pinning,omitempty"`
	// Neighbours counts the machines of others that were in use on the same
	// host. Left out where that is not known.
	Neighbours *int `json:"neighbours,omitempty"`
	// Shared: others could use the same cores or memory bandwidth.
	Shared bool `json:"shared,omitempty"`
	// Oversubscribed: the machine has fewer cores than it was promised.
	Oversubscribed bool   `json:"oversubscribed,omitempty"`
	Probe          *Probe `json:"probe,omitempty"`
	// Scratch is where the node's programs put files for a while, and what figures of
	// disks are of.
	Scratch *Scratch `json:"scratch,omitempty"`
	// Tools are programs of others that the image has for measuring, each with its
	// version.
	Tools []string `json:"tools,omitempty"`
	// Host names the conditions, as they are called here without units, that are those of the
	// whole host of which the machine is a slice: others may change or use them.
	Host []string `json:"host,omitempty"`
	// Differ names the conditions, as they are called here without units, that the nodes of a
	// cluster do not have in common.
	Differ []string `json:"differ,omitempty"`
}

// ProcessorClock is how fast a processor could run.
type ProcessorClock struct {
	Governor string `json:"governor,omitempty"`
	Driver   string `json:"driver,omitempty"`
	Min      int64  `json:"min_hz,omitempty"`  // Hz
	Max      int64  `json:"max_hz,omitempty"`  // Hz
	Base     int64  `json:"base_hz,omitempty"` // Hz, what peaks are computed with
	// Boost reports whether it may run above its base clock.
	Boost *bool `json:"boost,omitempty"`
}

// HugePages is the state of large pages of memory.
type HugePages struct {
	Transparent string `json:"transparent,omitempty"` // always, madvise, never
	Size        int64  `json:"size_bytes,omitempty"`  // bytes
	Reserved    int64  `json:"reserved,omitempty"`    // how many
}

// Library is a library that a program had mapped.
type Library struct {
	File   string `json:"file"`             // the file that was mapped
	Config string `json:"config,omitempty"` // what it says of itself
}

// Probe is the program that measured. Figures of different builds are not
// compared.
type Probe struct {
	Source   string `json:"source,omitempty"` // digest of its source
	Compiler string `json:"compiler,omitempty"`
	Flags    string `json:"flags,omitempty"` // of the compiler
}

// Scratch is a folder for files that are gone with the node.
type Scratch struct {
	Path string `json:"path"`
	Type string `json:"type,omitempty"` // of the file system, as the kernel calls it
	// Memory: the file system is in memory. Direct: files can be read and written past
	// the page cache; where they cannot, figures are those of the cache, too.
	Memory bool `json:"memory,omitempty"`
	Direct bool `json:"direct,omitempty"`
}

// Bounded are the test environment as far as a node can be believed: what no machine is
// like is left out, and texts are cut. A node's word on itself is from outside.
func (c TestEnvironment) Bounded() TestEnvironment {
	for _, s := range []*string{
		&c.Provider, &c.Processor, &c.Virtualization, &c.Hypervisor, &c.Kernel, &c.MPI, &c.Transport, &c.Pinning,
		&c.ClockSource, &c.Firmware, &c.Microcode, &c.SMT,
	} {
		*s = oneLine(*s)
	}
	for _, n := range []*int{&c.Sockets, &c.Cores, &c.Threads} {
		if *n < 0 || *n > maxThread {
			*n = 0
		}
	}
	for _, n := range []*int64{&c.Memory, &c.Cache} {
		if !whole(*n) {
			*n = 0
		}
	}
	c.NUMA = slices.DeleteFunc(slices.Clone(c.NUMA[:min(len(c.NUMA), maxParts)]), func(n NUMA) bool {
		return n.ID < 0 || !whole(n.Memory) || len(n.CPUs) > maxThread ||
			slices.ContainsFunc(n.CPUs, func(cpu int) bool { return cpu < 0 || cpu >= maxThread })
	})
	if c.Topology != nil && c.Topology.Check() != nil {
		c.Topology = nil
	}
	if c.Clock != nil {
		k := *c.Clock
		k.Governor, k.Driver = oneLine(k.Governor), oneLine(k.Driver)
		for _, n := range []*int64{&k.Min, &k.Max, &k.Base} {
			if *n < 0 || *n > 1e12 {
				*n = 0
			}
		}
		c.Clock = &k
	}
	if c.Pages != nil {
		p := *c.Pages
		p.Transparent = oneLine(p.Transparent)
		if !whole(p.Size) || !whole(p.Reserved) {
			p.Size, p.Reserved = 0, 0
		}
		c.Pages = &p
	}
	if c.BLAS != nil {
		c.BLAS = &Library{File: oneLine(c.BLAS.File), Config: oneLine(c.BLAS.Config)}
	}
	if c.Scratch != nil {
		s := *c.Scratch
		s.Path, s.Type = oneLine(s.Path), oneLine(s.Type)
		c.Scratch = &s
	}
	c.VM, c.VMSettings, c.Steal = nil, nil, nil // others say that
	c.Options, c.MTU = shortWords(c.Options), shortWords(c.MTU)
	c.Flags, c.Host, c.Differ, c.Tools = shortWords(c.Flags), shortWords(c.Host), shortWords(c.Differ), shortWords(c.Tools)
	return c
}

// mostText is how long a text of a node may be, and mostWords how many it may list.
const (
	mostText  = 256
	mostWords = 128
)

// oneLine is a text without what terminals and pages do not show as it is.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '\uFFFD' || unicode.Is(unicode.C, r) {
			return -1
		}
		return r
	}, s[:min(len(s), 4*mostText)])
	for len(s) > mostText {
		_, size := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-size]
	}
	return s
}

func shortWords(list []string) []string {
	if list == nil {
		return nil
	}
	out := make([]string, 0, min(len(list), mostWords))
	for _, w := range list[:min(len(list), mostWords)] {
		out = append(out, oneLine(w))
	}
	return out
}

// ConditionName is what a field of TestEnvironment is called where its name is a word: its
// key without the unit.
func ConditionName(f reflect.StructField) string {
	key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return strings.TrimSuffix(key, "_bytes")
}
