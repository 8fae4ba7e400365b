package diskbench

import (
	"fmt"
	"strconv"
)

// Sizes of what is read and written at once.
const (
	blockBytes = 1 << 20
	pageBytes  = 4 << 10
)

// job is one thing that fio does, and what is told of it.
type job struct {
	name, rw string
	engine   string
	size     int // of what is read or written at once
	depth    int // how many of them are under way
	// One of these: metrics that are made of it.
	bandwidth, operations, latency string
}

// jobs are what is measured, in order. Many operations under way show what the disk
// can, one at a time how long a program waits for it: with plain reads and writes,
// because fio does not count for latency what the kernel does while it takes an
// operation that is not waited for, and in memory that is all of it.
func jobs() []job {
	return []job{
		{name: "write", rw: "write", engine: "libaio", size: blockBytes, depth: 8, bandwidth: "disk.write"},
		{name: "read", rw: "read", engine: "libaio", size: blockBytes, depth: 8, bandwidth: "disk.read"},
		{name: "many-writes", rw: "randwrite", engine: "libaio", size: pageBytes, depth: 32, operations: "disk.random.write"},
		{name: "many-reads", rw: "randread", engine: "libaio", size: pageBytes, depth: 32, operations: "disk.random.read"},
		{name: "one-write", rw: "randwrite", engine: "psync", size: pageBytes, depth: 1, latency: "disk.latency.write"},
		{name: "one-read", rw: "randread", engine: "psync", size: pageBytes, depth: 1, latency: "disk.latency.read"},
	}
}

// arguments are those of fio. The file is descriptor 3: it has no name.
func arguments(size int64, seconds float64, direct bool, seed uint64) []string {
	args := []string{
		"--output-format=json", "--eta=never", "--filename=/proc/self/fd/3", "--size=" + strconv.FormatInt(size, 10),
		"--allow_file_create=0", "--overwrite=1", "--thread", "--disk_util=0",
		"--time_based", "--runtime=" + strconv.FormatInt(int64(seconds*1000), 10) + "ms",
		// fio takes no larger seed.
		"--randrepeat=0", "--randseed=" + strconv.FormatUint(seed>>2, 10),
		"--percentile_list=50:99",
	}
	if direct {
		args = append(args, "--direct=1")
	}
	for _, j := range jobs() {
		args = append(args, "--name="+j.name, "--stonewall", "--rw="+j.rw, fmt.Sprintf("--bs=%d", j.size), fmt.Sprintf("--iodepth=%d", j.depth), "--ioengine="+j.engine)
	}
	return args
}
