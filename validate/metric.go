package validate

import "strings"

// metricUnits are the metrics of the probe. A star stands for one word.
func metricUnits() []struct{ name, unit string } {
	return []struct{ name, unit string }{
		{"dgemm", "flop/s"},
		{"stream.copy", "B/s"}, {"stream.scale", "B/s"}, {"stream.add", "B/s"}, {"stream.triad", "B/s"},
		{"latency", "s"},
		{"noise.median", "s"}, {"noise.p99", "s"}, {"noise.p999", "s"}, {"noise.max", "s"}, {"noise.share", "1"},
		{"core.int.*", "op/s"}, {"core.mem.*", "op/s"}, {"core.fp.*", "op/s"},
		{"mix.O0", "flop/s"}, {"mix.O1", "flop/s"}, {"mix.O2", "flop/s"}, {"mix.O3", "flop/s"},
		{"pair.latency", "s"}, {"pair.bandwidth", "B/s"}, {"pair.both", "B/s"},
		{"ring.natural.latency", "s"}, {"ring.natural.bandwidth", "B/s"},
		{"ring.random.latency", "s"}, {"ring.random.bandwidth", "B/s"},
		{"alltoall", "B/s"},
		{"io.shared.write", "B/s"}, {"io.shared.read", "B/s"}, {"io.each.write", "B/s"}, {"io.each.read", "B/s"},
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

// mayVary tells whether a metric differs from launch to launch by its nature: who
// asks how long the worst delay of a second was gets another answer each second. It
// can be low, and is never unstable.
func mayVary(name string) bool {
	return strings.HasPrefix(name, "noise.") && name != "noise.median"
}

// LessIsBetter says so of times and lost shares, by their unit.
func LessIsBetter(unit string) bool { return unit == "s" || unit == "1" }
