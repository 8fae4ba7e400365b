package program

import "github.com/muster-hpc/muster"

// sum adds up the figures of all ranks. One that failed its check leaves none. What is omitted has its reason in the
// output.
const sum = ` | awk -F'[:,]' '/"kind":"omitted"/ { sub(/.*"text":"/, ""); sub(/".*/, ""); print "omitted: " $0; next } /"kind":"sample"/ && index($0, "\"metric\":\"" m "\",") { if (!/"ok":true/) bad = 1; for (i = 1; i < NF; i++) if ($i == "\"value\"") { s += $(i + 1); break } } END { if (!bad && s > 0) print "figure", s }' m=`

// probes are two of the measurements that certificates are made of, as programs: what memory gives all ranks
// together, and how long a short message takes between two.
func probes() []muster.Program {
	one := func(name, mode, metric string, m muster.ProgramMetric) muster.Program {
		m.Pattern = `^figure ([-+0-9.eE]+)`
		return muster.Program{Name: name, Builtin: true, ProgramSpec: muster.ProgramSpec{
			Run:   "mpirun -n {ranks} " + Folder + "muster-probe " + mode + " --only " + metric + " --seconds 2" + sum + metric,
			Check: "^figure ", Metric: &m,
		}}
	}
	return []muster.Program{
		one("latency", "pairs --rounds 0-1 --sizes 8", "pair.latency", muster.ProgramMetric{Name: "latency", Unit: "s", Better: muster.BetterLower}),
		one("stream", "alone --threads 1", "stream.triad", muster.ProgramMetric{Name: "triad", Unit: "B/s", Better: muster.BetterHigher}),
	}
}
