package muster_test

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/muster-hpc/muster"
)

func TestBounded(t *testing.T) {
	t.Parallel()
	top := goodTopology()
	yes := true
	good := muster.TestEnvironment{
		Processor: "AMD EPYC 9354", Sockets: 1, Cores: 2, Threads: 4, Memory: 1 << 40, NUMA: []muster.NUMA{{ID: 0, CPUs: []int{0, 1}, Memory: 1 << 40}},
		Topology: &top, Cache: 32 << 20, Clock: &muster.ProcessorClock{Governor: "performance", Max: 3_800_000_000, Boost: &yes},
		Pages: &muster.HugePages{Transparent: "always", Size: 2 << 20, Reserved: 3}, Flags: []string{"avx2"}, BLAS: &muster.Library{File: "/usr/lib/größe.so"},
	}
	if got := good.Bounded(); !reflect.DeepEqual(got, good) {
		t.Errorf("\n%+v\n%+v", got, good)
	}
	bad := top
	bad.Source = ""
	wild := muster.TestEnvironment{
		Processor: "\x1b[2Jé\xff" + strings.Repeat("ö", 5000), Cores: -1, Threads: math.MaxInt, Memory: -5, Cache: 1 << 60, Topology: &bad,
		NUMA: []muster.NUMA{{ID: -1}, {ID: 1, CPUs: []int{-4}}, {ID: 2}}, Clock: &muster.ProcessorClock{Base: math.MaxInt64},
		Pages: &muster.HugePages{Size: -1}, Flags: make([]string, 100_000), Host: []string{strings.Repeat("x", 10_000)},
	}
	got := wild.Bounded()
	if got.Cores != 0 || got.Threads != 0 || got.Memory != 0 || got.Cache != 0 || got.Topology != nil || len(got.NUMA) != 1 || got.Clock.Base != 0 ||
		got.Pages.Size != 0 || len(got.Flags) != 128 || len(got.Host[0]) != 256 || len(got.Processor) > 256 || !strings.HasPrefix(got.Processor, "[2Jéö") {
		t.Errorf("%+v", got)
	}
	if wild.Cores != -1 || wild.Clock.Base != math.MaxInt64 {
		t.Error("it was changed")
	}
}

// Whatever a node sends, what is kept is small, can be signed, and stays as it is.
func TestBoundedProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var c muster.TestEnvironment
		c.Processor = string(rapid.SliceOfN(rapid.Byte(), 0, 2000).Draw(t, "processor"))
		c.Kernel = rapid.String().Draw(t, "kernel")
		c.Flags = rapid.SliceOf(rapid.String()).Draw(t, "flags")
		c.Memory = rapid.Int64().Draw(t, "memory")
		c.Cores = rapid.Int().Draw(t, "cores")
		c.NUMA = []muster.NUMA{{ID: rapid.Int().Draw(t, "id"), Memory: rapid.Int64().Draw(t, "size"), CPUs: rapid.SliceOf(rapid.Int()).Draw(t, "cpus")}}
		once := c.Bounded()
		if twice := once.Bounded(); !reflect.DeepEqual(once, twice) {
			t.Fatalf("\n%+v\n%+v", once, twice)
		}
		if !utf8.ValidString(once.Processor) || len(once.Processor) > 256 || once.Memory < 0 || once.Cores < 0 {
			t.Fatalf("%+v", once)
		}
		if b, err := json.Marshal(once); err != nil || len(b) > 1<<20 {
			t.Fatal(len(b), err)
		}
	})
}
