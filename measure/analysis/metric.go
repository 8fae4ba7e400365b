package analysis

import "strings"

// metricUnits are the metrics of launches. A star stands for one word.
func metricUnits() []struct{ name, unit string } {
	return []struct{ name, unit string }{
		{"dgemm", "flop/s"},
		{"stream.copy", "B/s"}, {"stream.scale", "B/s"}, {"stream.add", "B/s"}, {"stream.triad", "B/s"},
		{"stream.copy.time", "s"}, {"stream.scale.time", "s"}, {"stream.add.time", "s"}, {"stream.triad.time", "s"},
		{"latency", "s"},
		{"noise.median", "s"}, {"noise.p99", "s"}, {"noise.p999", "s"}, {"noise.max", "s"}, {"noise.share", "1"},
		{"core.int.*", "op/s"}, {"core.mem.*", "op/s"}, {"core.fp.*", "op/s"},
		{"mix.O0", "flop/s"}, {"mix.O1", "flop/s"}, {"mix.O2", "flop/s"}, {"mix.O3", "flop/s"},
		{"arith.1.double.*", "flop/s"}, {"arith.2.double.*", "flop/s"}, {"arith.3.double.*", "flop/s"}, {"arith.4.double.*", "flop/s"},
		{"arith.1.float.*", "flop/s"}, {"arith.2.float.*", "flop/s"}, {"arith.3.float.*", "flop/s"}, {"arith.4.float.*", "flop/s"},
		{"arith.loop.double.*", "s"}, {"arith.loop.float.*", "s"},
		{"pair.latency", "s"}, {"pair.bandwidth", "B/s"}, {"pair.both", "B/s"},
		{"ring.natural.latency", "s"}, {"ring.natural.bandwidth", "B/s"},
		{"ring.random.latency", "s"}, {"ring.random.bandwidth", "B/s"},
		{"alltoall", "B/s"},
		{"io.shared.write", "B/s"}, {"io.shared.read", "B/s"}, {"io.each.write", "B/s"}, {"io.each.read", "B/s"},
		{"disk.read", "B/s"}, {"disk.write", "B/s"}, {"disk.random.read", "op/s"}, {"disk.random.write", "op/s"},
		{"disk.latency.read", "s"}, {"disk.latency.read.p99", "s"}, {"disk.latency.write", "s"}, {"disk.latency.write.p99", "s"},
		{"net.tcp.bandwidth", "B/s"}, {"net.tcp.again", "1"},
		{"net.udp.bandwidth", "B/s"}, {"net.udp.loss", "1"}, {"net.udp.jitter", "s"},
	}
}

// MetricUnit is the unit of a metric of the probe; false if there is none of that
// name. Names are stable: what is measured in another way gets another name.
func MetricUnit(name string) (string, bool) {
	for _, m := range metricUnits() {
		group, any := strings.CutSuffix(m.name, "*")
		if !any && name == m.name || any && len(name) > len(group) && strings.HasPrefix(name, group) && !strings.ContainsAny(name[len(group):], ".*") {
			return m.unit, true
		}
	}
	return "", false
}

// mayVary reports whether a metric differs from launch to launch by its nature: who
// asks how long the worst delay of a second was gets another answer each second. It
// can be low, and is never unstable.
func mayVary(name string) bool {
	return strings.HasPrefix(name, "noise.") && name != "noise.median" || strings.HasPrefix(name, "disk.latency.") && strings.HasSuffix(name, ".p99")
}

// shown reports whether a metric is shown, and not compared with other nodes or other
// days. What is most often exactly nothing has no ratio to anything: the first packet
// that is lost would be infinitely worse than none. And iperf3 makes jitter of the
// last few packets of a test, so that its median says little. A site can promise
// them: that compares no ratios. The times of STREAM are its bandwidths once more, and
// what of arith.* is a fault is one of mix.* and core.fp.*, too: each further test
// would make the others see less.
func shown(name string) bool {
	return strings.HasPrefix(name, "arith.") || strings.HasPrefix(name, "stream.") && strings.HasSuffix(name, ".time") ||
		name == "net.tcp.again" || name == "net.udp.loss" || name == "net.udp.jitter"
}

// LessIsBetter says so of times and lost shares, by their unit.
func LessIsBetter(unit string) bool { return unit == "s" || unit == "1" }
