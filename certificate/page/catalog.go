package page

import "strings"

// about is what people are told of a metric.
type about struct {
	Name  string
	Title string
	What  string // in a sentence: what it is
	group int    // the order on the page
}

// catalog has the metrics of decision 9 in the order in which people ask for them.
// A name that ends in * is of all that begin so.
func catalog() []about {
	list := []about{
		{Name: "dgemm", Title: "Matrix product", What: "Floating-point operations per second in a product of large matrices of 64-bit numbers, by the library of linear algebra that programs of this image use. The nearest to what the processor can do at best."},
		{Name: "hpl*", Title: "Linpack", What: "Floating-point operations per second while solving a large dense system of equations, as the Top500 list counts them."},
		{Name: "stream.triad", Title: "Memory bandwidth, triad", What: "Bytes per second between processors and memory in a = b + s·c over arrays that fit no cache. Most simulations are bound by it."},
		{Name: "stream.copy", Title: "Memory bandwidth, copy", What: "The same in a = b."},
		{Name: "stream.scale", Title: "Memory bandwidth, scale", What: "The same in a = s·b."},
		{Name: "stream.add", Title: "Memory bandwidth, add", What: "The same in a = b + c."},
		{Name: "stream.triad.time", Title: "Time of triad", What: "How long one pass of it over the arrays took: the mean, the shortest and the longest."},
		{Name: "stream.copy.time", Title: "Time of copy", What: "The same for a = b."},
		{Name: "stream.scale.time", Title: "Time of scale", What: "The same for a = s·b."},
		{Name: "stream.add.time", Title: "Time of add", What: "The same for a = b + c."},
		{Name: "latency", Title: "Memory latency", What: "How long one read takes where each address is known only from the read before, in a piece of memory of the given size: small ones lie in caches, large ones do not."},
		{Name: "noise.share", Title: "Operating system noise", What: "The share of computing time that is lost to whatever else runs on the node, found by doing the same small work again and again."},
		{Name: "noise.median", Title: "Noise, median", What: "How long a fixed piece of work of about a millisecond takes, as a rule."},
		{Name: "noise.p99", Title: "Noise, 1 in 100", What: "One piece of that work in a hundred takes at least so long."},
		{Name: "noise.p999", Title: "Noise, 1 in 1,000", What: "One piece of that work in a thousand takes at least so long. In programs where all wait for the slowest, this is what counts."},
		{Name: "noise.max", Title: "Noise, longest", What: "The longest that this piece of work took."},
		{Name: "pair.latency", Title: "Latency between nodes", What: "Half of the time that a message of 8 bytes takes to another node and back: what small messages cost."},
		{Name: "pair.bandwidth", Title: "Bandwidth between nodes", What: "Bytes per second from one node to another, with several messages on their way at once."},
		{Name: "pair.both", Title: "Bandwidth, both ways", What: "The same in both directions at once, in sum."},
		{Name: "ring.natural.latency", Title: "Ring latency, in order", What: "All processes send 8 bytes to both neighbours at once, in their natural order; the slowest counts."},
		{Name: "ring.natural.bandwidth", Title: "Ring bandwidth, in order", What: "The same with messages of 2 MB, sent by each process."},
		{Name: "ring.random.latency", Title: "Ring latency, random", What: "The same as in order, with neighbours drawn by chance, so that most messages cross the network."},
		{Name: "ring.random.bandwidth", Title: "Ring bandwidth, random", What: "Bytes per second sent by each process to neighbours drawn by chance."},
		{Name: "alltoall", Title: "All to all", What: "Bytes per second sent by each process while each sends to all others: the heaviest load on the network."},
		{Name: "io.shared.write", Title: "Writing one shared file", What: "All processes write parts of one file through MPI."},
		{Name: "io.shared.read", Title: "Reading one shared file", What: "All processes read parts of one file that other nodes wrote."},
		{Name: "io.each.write", Title: "Writing a file each", What: "Each process writes a file of its own."},
		{Name: "io.each.read", Title: "Reading a file each", What: "Each process reads a file that another node wrote."},
		{Name: "core.int*", Title: "One core, integers", What: "Operations per second of one thread in small programs that calculate with integers."},
		{Name: "core.mem*", Title: "One core, memory", What: "Operations per second of one thread in small programs that move data."},
		{Name: "core.fp*", Title: "One core, floating point", What: "Operations per second of one thread in small programs that calculate with floating-point numbers."},
		{Name: "mix*", Title: "Arithmetic as compiled", What: "One and the same floating-point program, compiled with less or more optimisation (O0 to O3): what users' own programs can expect."},
		{Name: "arith.loop*", Title: "Empty loop", What: "How long one round of a loop takes that only copies a number: it is subtracted from the mixes."},
		{Name: "arith*", Title: "Arithmetic mix", What: "One core in straight-line code of additions, subtractions, multiplications and divisions. In a hundred: mix 1 has 40, 23, 27, 10, mix 2 has 38, 9, 43, 9, mix 3 has 43, 3, 51, 3 and mix 4 has 43, 2, 55, 0. With 64 bits (double) or 32 (float), compiled without optimisation (O0), with variables in registers, with O2, O3 and for the widest vectors of the processor (fast)."},
		{Name: "disk.read", Title: "Disk, reading in order", What: "Bytes per second from the node's scratch, in pieces of 1 MiB one after the other: what reading one large file takes."},
		{Name: "disk.write", Title: "Disk, writing in order", What: "The same into the node's scratch: what writing a checkpoint takes."},
		{Name: "disk.random.read", Title: "Disk, reading here and there", What: "How many pieces of 4 KiB a second, each from anywhere in a file, with 32 under way at once: what databases and many small files ask for."},
		{Name: "disk.random.write", Title: "Disk, writing here and there", What: "The same, written."},
		{Name: "disk.latency.read", Title: "Disk, waiting for a read", What: "How long a program waits for 4 KiB from anywhere in a file, if it asks for one piece after the other: half of them take longer."},
		{Name: "disk.latency.read.p99", Title: "Disk, waiting for a read, 1 in 100", What: "One read in a hundred takes at least so long."},
		{Name: "disk.latency.write", Title: "Disk, waiting for a write", What: "The same until 4 KiB are written; a disk may still have them in its own memory."},
		{Name: "disk.latency.write.p99", Title: "Disk, waiting for a write, 1 in 100", What: "One write in a hundred takes at least so long."},
		{Name: "disk*", Title: "Disk", What: "Reading and writing files in the node's scratch."},
		{Name: "net.tcp.bandwidth", Title: "TCP bandwidth", What: "Bytes per second that one connection carries from one node to another without MPI: what copying files and most services can expect."},
		{Name: "net.tcp.again", Title: "TCP, sent again", What: "The share of TCP's segments that had to be sent a second time. It is shown and not judged: most often it is nothing."},
		{Name: "net.udp.bandwidth", Title: "UDP bandwidth", What: "Bytes per second that came where half of the TCP bandwidth was sent, and 1 Gbit/s at most, in datagrams that nobody sends again."},
		{Name: "net.udp.loss", Title: "UDP, lost", What: "The share of those datagrams that did not come. It is shown and not judged: most often it is nothing, and a busy processor loses some, too."},
		{Name: "net.udp.jitter", Title: "UDP, jitter", What: "By how much the time on the way changes from one datagram to the next, smoothed over the last ones as RFC 3550 does. It is shown and not judged."},
		{Name: "size.latency", Title: "Latency by size", What: "Half of the time that a message of some size takes to another node and back."},
		{Name: "size.bandwidth", Title: "Bandwidth by size", What: "Bytes per second from one node to another, with several messages of that size on their way at once; each way by itself."},
		{Name: "size.both", Title: "Bandwidth by size, both ways", What: "The same in both directions at once, in sum."},
		{Name: "inside.core*", Title: "Between threads of one core", What: "The same between two processes of one node, on two threads of one core."},
		{Name: "inside.cache*", Title: "Between cores with a common cache", What: "The same between two processes of one node, on two cores with a common last cache."},
		{Name: "inside.sockets*", Title: "Between sockets", What: "The same between two processes of one node, on two sockets."},
		{Name: "inside.socket*", Title: "Between caches of one socket", What: "The same between two processes of one node, on cores of one socket whose last cache is not the same."},
		{Name: "scale.pingpong*", Title: "Ping-pong", What: "A message of 8 bytes or 2 MB there and back between two processes while all others wait; half of the time, and bytes per second of that."},
		{Name: "scale.natural*", Title: "Ring, in order", What: "All processes send 8 bytes or 2 MB to both neighbours at once, in their natural order: how long that takes the slowest, and bytes per second that each sends."},
		{Name: "scale.random*", Title: "Ring, random", What: "The same with neighbours drawn by chance. The time of 2 MB is what programs feel that exchange much with others all over a cluster."},
		{Name: "clients.write*", Title: "Many clients writing one file", What: "Processes write parts of one file through MPI. Opening, moving bytes until all are on the disks, and closing are timed apart: each begins when all have ended the one before."},
		{Name: "clients.read*", Title: "Many clients reading one file", What: "The same when the file is read, each part by another process than wrote it. Every byte is compared, which is not in the time."},
		{Name: "streams.tcp.bandwidth", Title: "TCP by connections", What: "Bytes per second from one node to another by several connections at once."},
		{Name: "streams.tcp.again", Title: "TCP by connections, sent again", What: "The share of segments that had to be sent a second time."},
		{Name: "streams.udp.bandwidth", Title: "UDP by rate", What: "Bytes per second that came of what was sent: more from step to step until datagrams are lost."},
		{Name: "streams.udp.loss", Title: "UDP by rate, lost", What: "The share of those datagrams that did not come."},
		{Name: "streams.udp.jitter", Title: "UDP by rate, jitter", What: "By how much the time on the way changes from one datagram to the next."},
		{Name: "net*", Title: "Network by sockets", What: "What programs reach that send by TCP or UDP, without MPI."},
	}
	for i := range list {
		list[i].group = i
	}
	return list
}

// unknownMetric is the place of metrics that this program does not know.
const unknownMetric = 1 << 10

// aboutMetric is what people are told of a metric, by its name.
func aboutMetric(name string) about {
	for _, a := range catalog() {
		stem, many := strings.CutSuffix(a.Name, "*")
		switch {
		case name == a.Name:
			return a
		case many && strings.HasPrefix(name, stem):
			if rest := strings.TrimLeft(name[len(stem):], ".-"); rest != "" {
				a.Title += ": " + rest
			}
			a.Name = name
			return a
		}
	}
	return about{Name: name, Title: name, What: "A newer program than the one that wrote this page knows what it is.", group: unknownMetric}
}

// unitText says which unit is meant, and which way is better.
func unitText(unit string, less bool) string {
	text := map[string]string{
		"s": "seconds", "B/s": "bytes per second", "flop/s": "floating-point operations per second", "op/s": "operations per second", "1": "a share",
	}[unit]
	if text == "" {
		text = unit
	}
	if less {
		return text + "; less is better"
	}
	return text + "; more is better"
}
