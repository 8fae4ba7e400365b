package cputree_test

import (
	"reflect"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/cputree"
)

// Threads come in any order; what they share says what they are parts of.
func TestAssemble(t *testing.T) {
	t.Parallel()
	l3 := func(key string) []cputree.Cache {
		return []cputree.Cache{{Level: 1, Size: 32 << 10, Sharers: "core" + key}, {Level: 3, Size: 16 << 20, Sharers: key}}
	}
	got := cputree.Assemble("sysfs", []cputree.Thread{
		{Number: 5, Package: 1, Node: 1, Memory: 2 << 30, Core: "c", Caches: l3("b")},
		{Number: 3, Package: 0, Node: 0, Memory: 1 << 30, Core: "a", Caches: l3("a")},
		{Number: 2, Package: 1, Node: 1, Memory: 2 << 30, Core: "c", Caches: l3("b")},
		{Number: 0, Package: 0, Node: 0, Memory: 1 << 30, Core: "a", Caches: l3("a")},
	}, []muster.MemoryNode{{ID: 2, Memory: 4 << 30}})
	caches := []muster.Cache{{Level: 3, Size: 16 << 20, Shared: 2, Count: 1}, {Level: 1, Size: 32 << 10, Shared: 2, Count: 1}}
	want := &muster.Topology{Source: "sysfs", Packages: []muster.Package{
		{ID: 0, Nodes: []muster.MemoryNode{{ID: 0, Memory: 1 << 30, Groups: []muster.CoreGroup{{Caches: caches, Cores: [][]int{{0, 3}}}}}, {ID: 2, Memory: 4 << 30}}},
		{ID: 1, Nodes: []muster.MemoryNode{{ID: 1, Memory: 2 << 30, Groups: []muster.CoreGroup{{Caches: caches, Cores: [][]int{{2, 5}}}}}}},
	}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\n%+v", got, want)
	}
}
