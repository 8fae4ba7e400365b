// Package usage samples what a node uses: processor, load, memory, network,
// disk, processes.
//
// On a machine of its own the kernel's totals are the node's. On a slice of a
// host /proc/stat, /proc/meminfo, /proc/loadavg and /proc/diskstats describe
// the whole host, so other sources are used there:
//
//   - processor: cpu.stat of the machine's own control group, else the sum over
//     its processes, dead children included;
//   - waiting for input and output: io.pressure of the same group, that is the
//     share of time in which something waited; 0 where there is none;
//   - load: processes that run or wait for a disk, or cores busy if that is
//     more (threads), averaged over a minute;
//   - memory: the machine's memory group where it is visible, else anonymous
//     memory of its processes plus what its tmpfs hold;
//   - disk: input and output of its processes, dead children included;
//   - network: its own network namespace, always exact.
package usage
