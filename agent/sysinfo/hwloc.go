package sysinfo

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/cputree"
)

// Bounds of what hwloc may say.
const (
	mostXML     = 8 << 20
	mostObjects = 1 << 16
	deepObjects = 64
)

// object is one of hwloc's: a package, a cache, a core, a thread, memory.
type object struct {
	kind    string
	index   int   // -1: it has none
	size    int64 // of a cache or of memory
	level   int   // of a cache
	number  int   // in the order of the document, which distinguishes objects
	threads bool  // there are some below it, or it is one
	// Of devices: the name, what kind, and where they are plugged in. nodes is the set of
	// memory nodes of everything else.
	name, device, pci, nodes string
	objects                  []*object
}

// parseHwloc reads hwloc's XML, of versions 1 and 2.
func parseHwloc(b []byte) (*muster.Topology, error) {
	if len(b) > mostXML {
		return nil, errors.New("it is too long")
	}
	root, err := objects(b)
	if err != nil {
		return nil, err
	}
	var w walk
	w.down(root, cputree.Thread{})
	t := cputree.Assemble("hwloc", w.threads, w.far())
	cards(root, nil, "", &t.NICs)
	if err := t.Check(); err != nil {
		return nil, err
	}
	return t, nil
}

// objects reads the tree. What is no part of processors and memory is left out,
// with all below it.
func objects(b []byte) (*object, error) {
	in := xml.NewDecoder(bytes.NewReader(b))
	root := &object{}
	path := []*object{root}
	n := 0
	for {
		tok, err := in.Token()
		if errors.Is(err, io.EOF) {
			if len(path) != 1 {
				return nil, errors.New("it is cut off")
			}
			return root, nil
		}
		if err != nil {
			return nil, err
		}
		switch e := tok.(type) {
		case xml.StartElement:
			if e.Name.Local != "object" {
				continue
			}
			if n++; n > mostObjects || len(path) > deepObjects {
				return nil, errors.New("it has too many objects")
			}
			o, err := newObject(e, n)
			if err != nil {
				return nil, err
			}
			at := path[len(path)-1]
			at.objects = append(at.objects, o)
			path = append(path, o)
		case xml.EndElement:
			if e.Name.Local == "object" {
				o := path[len(path)-1]
				o.threads = o.threads || o.kind == "PU"
				path = path[:len(path)-1]
				path[len(path)-1].threads = path[len(path)-1].threads || o.threads
			}
		}
	}
}

func newObject(e xml.StartElement, number int) (*object, error) {
	o := &object{index: -1, number: number}
	for _, a := range e.Attr {
		var err error
		switch a.Name.Local {
		case "type":
			o.kind = a.Value
		case "os_index":
			var v uint64
			if v, err = strconv.ParseUint(a.Value, 10, 31); err == nil {
				o.index = int(v)
			}
		case "cache_size", "local_memory":
			o.size, err = strconv.ParseInt(a.Value, 10, 64)
		case "depth": // of caches and bridges
			o.level, err = strconv.Atoi(a.Value)
		case "name":
			o.name = a.Value[:min(len(a.Value), 65)]
		case "osdev_type":
			o.device = a.Value
		case "pci_busid":
			o.pci = a.Value[:min(len(a.Value), 65)]
		case "nodeset":
			o.nodes = a.Value[:min(len(a.Value), 4096)]
		case "cache_type":
			if a.Value == "2" { // for instructions
				o.kind = "L0iCache"
			}
		}
		if err != nil {
			return nil, fmt.Errorf("%s is %.20q", a.Name.Local, a.Value)
		}
	}
	return o, nil
}

// walk collects the threads below an object, and all memory.
type walk struct {
	threads []cputree.Thread
	memory  []*object
}

func (w *walk) down(o *object, t cputree.Thread) {
	switch {
	case o.kind == "Package" || o.kind == "Socket":
		t.Package = max(o.index, 0)
	case o.kind == "Cache" || strings.HasPrefix(o.kind, "L") && strings.HasSuffix(o.kind, "Cache") && !strings.HasSuffix(o.kind, "iCache"):
		t.Caches = append([]cputree.Cache{{Level: o.level, Size: o.size, Sharers: strconv.Itoa(o.number)}}, t.Caches...) // the nearest is found last
	case o.kind == "Core":
		t.Core = strconv.Itoa(o.number)
	case o.kind == "NUMANode": // of version 1, where threads are below it
		w.memory = append(w.memory, o)
		t.Node, t.Memory = max(o.index, 0), o.size
	case o.kind == "PU":
		t.Number = o.index
		if t.Core == "" {
			t.Core = strconv.Itoa(o.number)
		}
		w.threads = append(w.threads, t)
		return
	}
	// Since version 2 memory hangs beside the threads that it is nearest to.
	if beside := memories(o); len(beside) > 0 {
		w.memory = append(w.memory, beside...)
		t.Node, t.Memory = max(beside[0].index, 0), beside[0].size
	}
	for _, c := range o.objects {
		if c.threads {
			w.down(c, t)
		}
	}
}

// memories are the memory nodes right below an object, or behind caches of memory.
func memories(o *object) []*object {
	var list []*object
	for _, c := range o.objects {
		switch {
		case c.threads:
		case c.kind == "NUMANode":
			list = append(list, c)
		case c.kind == "MemCache":
			list = append(list, memories(c)...)
		}
	}
	return list
}

// far are the memory nodes that no thread is nearest to.
func (w *walk) far() []muster.MemoryNode {
	var list []muster.MemoryNode
	for _, m := range w.memory {
		if !slices.ContainsFunc(w.threads, func(t cputree.Thread) bool { return t.Node == max(m.index, 0) }) {
			list = append(list, muster.MemoryNode{ID: max(m.index, 0), Memory: m.size})
		}
	}
	return list
}
