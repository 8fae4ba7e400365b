package hugepages_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/muster-hpc/muster/vm/hugepages"
	"pgregory.net/rapid"
)

const size = 2 << 20

// tree is a host whose memory nodes have so many pages, all free. It finds every page that it is asked for: it is files.
func tree(t testing.TB, nodes ...int64) hugepages.Host {
	t.Helper()
	h := hugepages.Host{Dir: t.TempDir()}
	for i, n := range nodes {
		dir := at(h, i)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"nr_hugepages", "free_hugepages"} {
			write(t, filepath.Join(dir, name), n)
		}
	}
	return h
}

func at(h hugepages.Host, node int) string {
	return filepath.Join(h.Dir, fmt.Sprintf("node%d/hugepages/hugepages-2048kB", node))
}

type fataler interface{ Fatal(...any) }

func write(t fataler, path string, n int64) {
	if err := os.WriteFile(path, []byte(strconv.FormatInt(n, 10)+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

func total(t fataler, h hugepages.Host, node int) int64 {
	b, err := os.ReadFile(filepath.Join(at(h, node), "nr_hugepages"))
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(b), "\n")
	n, err := strconv.ParseInt(line, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func none(int, int64) int64 { return 0 }

// What the site has set aside is used first, unless it is promised to others; the rest is taken, noted before that, and given back.
func TestTakeAndGive(t *testing.T) {
	t.Parallel()
	h := tree(t, 10, 3)
	var last []hugepages.Taken
	var seen []int64 // pages of the first node whenever something is noted
	note := func(list []hugepages.Taken) error {
		last = list
		seen = append(seen, total(t, h, 0))
		return nil
	}
	wants := []hugepages.Want{{Node: 0, Size: size, Pages: 12}, {Node: 1, Size: size, Pages: 2}}
	if err := h.Take(wants, func(node int, _ int64) int64 { return int64(4 * (1 - node)) }, note); err != nil {
		t.Fatal(err)
	}
	if total(t, h, 0) != 16 || total(t, h, 1) != 3 {
		t.Errorf("%d and %d pages", total(t, h, 0), total(t, h, 1))
	}
	if want := []hugepages.Taken{{Node: 0, Size: size, Before: 10, After: 16, Done: true}}; !slices.Equal(last, want) || !slices.Equal(seen, []int64{10, 16}) {
		t.Errorf("noted %+v, at %v", last, seen)
	}
	if err := h.Give(last, note); err != nil || total(t, h, 0) != 10 || len(last) > 0 {
		t.Errorf("%d pages left, %v, noted %+v", total(t, h, 0), err, last)
	}
}

// Nothing is kept of a try that fails, and the error says why.
func TestTooFew(t *testing.T) {
	t.Parallel()
	h := tree(t, 0)
	var last []hugepages.Taken
	err := h.Take([]hugepages.Want{{Node: 0, Size: size, Pages: 4}, {Node: 7, Size: size, Pages: 4}}, none, func(list []hugepages.Taken) error { last = list; return nil })
	if !errors.Is(err, os.ErrNotExist) || last != nil || total(t, h, 0) != 0 {
		t.Errorf("%v, noted %+v, %d pages", err, last, total(t, h, 0))
	}
	fails := errors.New("the disk is full")
	if err := h.Take([]hugepages.Want{{Node: 0, Size: size, Pages: 4}}, none, func([]hugepages.Taken) error { return fails }); !errors.Is(err, fails) || total(t, h, 0) != 0 {
		t.Errorf("%v, %d pages taken without a note", err, total(t, h, 0))
	}
}

// Wherever a server is killed that takes pages for some machines and gives back those of others, what is noted then is
// enough to leave the pools as they were, in whatever order they are given back, and whatever others take meanwhile.
func TestKilled(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "host")
		if err != nil {
			rt.Fatal(err)
		}
		h := hugepages.Host{Dir: dir}
		for node := range 2 {
			if err := os.MkdirAll(at(h, node), 0o755); err != nil {
				rt.Fatal(err)
			}
			for _, name := range []string{"nr_hugepages", "free_hugepages"} {
				write(rt, filepath.Join(at(h, node), name), 5)
			}
		}
		kill := rapid.IntRange(0, 30).Draw(rt, "kill")
		late := rapid.Bool().Draw(rt, "after the change") // that the last note announces
		notes := map[int][]hugepages.Taken{}              // by machine
		written := 0
		type killed struct{}
		note := func(machine int) func([]hugepages.Taken) error {
			return func(list []hugepages.Taken) error {
				if written == kill && !late {
					panic(killed{}) // before the note is written: the change that it is about is done, or not begun
				}
				notes[machine] = list
				written++
				if written == kill && late {
					panic(killed{})
				}
				return nil
			}
		}
		func() {
			defer func() {
				if r := recover(); r != nil {
					if _, ok := r.(killed); !ok {
						panic(r)
					}
				}
			}()
			for range rapid.IntRange(1, 8).Draw(rt, "steps") {
				machine := rapid.IntRange(0, 2).Draw(rt, "machine")
				if len(notes[machine]) > 0 {
					if err := h.Give(notes[machine], note(machine)); err != nil {
						rt.Fatal(err)
					}
					continue
				}
				wants := []hugepages.Want{{Node: 0, Size: size, Pages: rapid.Int64Range(0, 20).Draw(rt, "first")}, {Node: 1, Size: size, Pages: rapid.Int64Range(0, 20).Draw(rt, "second")}}
				if err := h.Take(wants, none, note(machine)); err != nil {
					rt.Fatal(err)
				}
			}
		}()
		for machine := range notes {
			if notes[machine], err = h.Settle(notes[machine]); err != nil {
				rt.Fatal(err)
			}
		}
		others := rapid.Int64Range(0, 9).Draw(rt, "others")
		write(rt, filepath.Join(at(h, 0), "nr_hugepages"), total(rt, h, 0)+others)
		for _, machine := range rapid.Permutation([]int{0, 1, 2}).Draw(rt, "order") {
			if err := h.Give(notes[machine], func([]hugepages.Taken) error { return nil }); err != nil {
				rt.Fatal(err)
			}
		}
		if total(rt, h, 0) != 5+others || total(rt, h, 1) != 5 {
			rt.Fatalf("%d and %d pages left of 5, others took %d; noted %+v", total(rt, h, 0), total(rt, h, 1), others, notes)
		}
	})
}

// The kernel of this host gives pages and takes them back.
func TestKernel(t *testing.T) {
	t.Parallel()
	h := hugepages.This()
	before, err := os.ReadFile(filepath.Join(at(h, 0), "nr_hugepages"))
	if err != nil || os.Getuid() != 0 || testing.Short() {
		t.Skip("needs root, and a kernel with huge pages of 2 MiB")
	}
	t.Logf("before: %s", before)
	var kept []hugepages.Taken
	err = h.Take([]hugepages.Want{{Node: 0, Size: size, Pages: 3}}, func(int, int64) int64 { return 1 << 30 }, func(list []hugepages.Taken) error { kept = list; return nil })
	var short *hugepages.ShortError
	if errors.As(err, &short) {
		t.Skip("this host has no free memory in one piece:", err)
	}
	if err != nil || len(kept) != 1 || kept[0].After-kept[0].Before != 3 || !kept[0].Done {
		t.Fatalf("%+v, %v", kept, err)
	}
	if err := h.Give(kept, func(list []hugepages.Taken) error { kept = list; return nil }); err != nil || len(kept) > 0 {
		t.Error(err, kept)
	}
}
