package analysis_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	muster "github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/measure/analysis"
)

const (
	header = `{"kind":"launch","v":1,"mode":"pairs","seed":18446744073709551615,"started":1760000000,"ranks":2,"mpi":"Open MPI v5.0.7","compiler":"gcc 14","flags":"-O2","source":"ab12","timer":"CLOCK_MONOTONIC_RAW","clock":2.5e-08,"cache":110100480}`
	rank0  = `{"kind":"rank","rank":0,"host":"n01","cpus":"0-1","blas":"/usr/lib/libopenblas.so","blas_config":"OpenBLAS 0.3","threads":2}`
	rank1  = `{"kind":"rank","rank":1,"host":"n02","cpus":"0","blas":"/usr/lib/libopenblas.so","blas_config":"","threads":1}`
	good   = `{"kind":"sample","metric":"pair.bandwidth","value":2.5e9,"unit":"B/s","host":"n02","rank":1,"peer":"n01","peer_rank":0,"size":65536,"round":3,"n":17,"min":2e9,"max":2.6e9,"seconds":0.05,"ok":true,"check":"all"}`
	wrong  = `{"kind":"sample","metric":"pair.both","value":0,"unit":"B/s","host":"n01","rank":0,"n":0,"min":0,"max":0,"seconds":0,"ok":false,"check":"wrong bytes came in window 3"}`
	lacks  = `{"kind":"omitted","host":"n02","what":"disk","text":"its image has no fio"}`
	sent   = `{"kind":"transport","rank":0,"pml":["ob1"],"btl":["self","tcp"],"mtl":[],"mapped":["libmpi.so.40"],"set":{"OMPI_MCA_btl":"tcp,self"},"sent":{"eth1":123456},"tcp":["10.0.0.2"]}`
)

func end(n int) string { return fmt.Sprintf(`{"kind":"end","samples":%d}`, n) }

func lines(l ...string) string { return strings.Join(l, "\n") + "\n" }

func read(text string) (analysis.Launch, error) {
	return analysis.Read(strings.NewReader(text), analysis.DefaultLimits())
}

func TestRead(t *testing.T) {
	t.Parallel()
	newer := `{"kind":"weather","sky":"blue"}`
	metric := `{"kind":"sample","metric":"quantum.depth","value":3,"unit":"qubit","ok":true}`
	l, err := read(lines(header, rank0, rank1, good, lacks, newer, wrong, metric, sent, end(3)))
	if err != nil {
		t.Fatalf("%+v", err)
	}
	if l.Mode != analysis.Pairs || l.Seed != 1<<64-1 || l.Started.Unix() != 1760000000 || l.Clock != 2.5e-8 || l.Source != "ab12" || l.Cache != 110100480 {
		t.Errorf("header = %+v", l)
	}
	if len(l.Ranks) != 2 || l.Ranks[0].Host != "n01" || l.Ranks[0].CPUs != "0-1" || l.Ranks[0].Threads != 2 || l.Ranks[1].Rank != 1 {
		t.Errorf("ranks = %+v", l.Ranks)
	}
	if len(l.Samples) != 1 {
		t.Fatalf("samples = %+v", l.Samples)
	}
	want := analysis.Sample{Metric: "pair.bandwidth", Unit: "B/s", Value: 2.5e9, Min: 2e9, Max: 2.6e9, Mean: 2.5e9, Host: "n02", Peer: "n01", Rank: 1,
		Size: 65536, Round: 3, N: 17, Seconds: 0.05, Check: "all", Line: 4}
	if l.Samples[0] != want {
		t.Errorf("sample = %+v", l.Samples[0])
	}
	if len(l.Findings) != 1 || l.Findings[0].Check != "wrong bytes came in window 3" || l.Findings[0].Value != 0 {
		t.Errorf("findings = %+v", l.Findings)
	}
	if len(l.Omitted) != 1 || l.Omitted[0] != (analysis.Omitted{Host: "n02", What: "disk", Text: "its image has no fio"}) {
		t.Errorf("omitted = %+v", l.Omitted)
	}
	if l.Unknown != 2 {
		t.Errorf("unknown = %d, want the weather and the metric", l.Unknown)
	}
	if len(l.Transports) != 1 || l.Transports[0].Sent["eth1"] != 123456 || l.Transports[0].PML[0] != "ob1" {
		t.Errorf("transports = %+v", l.Transports)
	}
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	with := func(from, to string) string {
		return lines(header, rank0, rank1, strings.Replace(good, from, to, 1), end(1))
	}
	for name, c := range map[string]struct{ text, at, field, names string }{
		"nothing":           {"", "line 0", "output", ""},
		"no header":         {lines(rank0, end(0)), "line 1", "output", `"rank"`},
		"another version":   {lines(strings.Replace(header, `"v":1`, `"v":2`, 1), end(0)), "line 1", "output", "1"},
		"no such mode":      {lines(strings.Replace(header, "pairs", "peers", 1), rank0, rank1, end(0)), "line 1", "mode", `"peers"`},
		"two headers":       {lines(header, rank0, rank1, header, end(0)), "line 4", "output", ""},
		"cut between lines": {lines(header, rank0, rank1, good), "line 4", "output", "1"},
		"cut in a line":     {lines(header, rank0, rank1) + good[:50], "line 4", "output", ""},
		"cut before end's newline": {strings.TrimSuffix(lines(header, rank0, rank1, end(0)), "\n"), "line 4",
			"output", ""},
		"more after the end": {lines(header, rank0, rank1, end(0), good), "line 5", "output", ""},
		"a line was lost":    {lines(header, rank0, rank1, good, end(2)), "line 5", "samples", "1"},
		"end without number": {lines(header, rank0, rank1, `{"kind":"end"}`), "line 4", "samples", "0"},
		"a rank was lost":    {lines(header, rank0, end(0)), "line 3", "rank", "1 of 2"},
		"a rank twice":       {lines(header, rank0, rank0, end(0)), "line 3", "rank", "0"},
		"a rank too many":    {lines(header, rank0, strings.Replace(rank1, `"rank":1`, `"rank":2`, 1), end(0)), "line 3", "rank", "0 to 1"},
		"too many ranks":     {lines(strings.Replace(header, `"ranks":2`, `"ranks":2000000000`, 1), end(0)), "line 1", "output", "65536"},
		"not JSON":           {lines(header, "srun: job 7 queued", end(0)), "line 2", "output", "srun: job 7 queued"},
		"no kind":            {lines(header, `{"rank":0}`, end(0)), "line 2", "output", "kind"},
		"field twice":        {with(`"n":17`, `"n":17,"N":18`), "line 4", "output", "N"},
		"wrong type":         {with(`"n":17`, `"n":"17"`), "line 4", "output", "n"},
		"NaN":                {with("2.5e9", "NaN"), "line 4", "output", "NaN"},
		"infinite":           {with("2.5e9", "1e999"), "line 4", "output", "1e999"},
		"negative":           {with("2.5e9", "-2.5e9"), "line 4", "value", "-2.5e+09"},
		"nothing measured":   {with("2.5e9", "0"), "line 4", "value", "pair.bandwidth"},
		"absurd":             {with("2.6e9", "2.6e19"), "line 4", "value", "2.6e+19"},
		"out of its range":   {with("2.5e9", "2.7e9"), "line 4", "value", "2.7e+09"},
		"absurd mean":        {with(`"max"`, `"mean":1.9e9,"max"`), "line 4", "value", "1.9e+09"},
		"negative streams":   {with(`"max"`, `"streams":-1,"max"`), "line 4", "value", "streams"},
		"absurd rate":        {with(`"max"`, `"offered":1e16,"max"`), "line 4", "value", "offered"},
		"no value":           {with(`"value":2.5e9,`, ""), "line 4", "value", "pair.bandwidth"},
		"no repetitions":     {with(`"n":17,`, ""), "line 4", "value", "n"},
		"no ok":              {with(`"ok":true,`, ""), "line 4", "ok", ""},
		"wrong unit":         {with(`"B/s"`, `"s"`), "line 4", "unit", "B/s"},
		"no unit":            {with(`"unit":"B/s",`, ""), "line 4", "unit", "B/s"},
		"no metric":          {with(`"metric":"pair.bandwidth",`, ""), "line 4", "metric", ""},
		"unknown host":       {with(`"host":"n02"`, `"host":"n03"`), "line 4", "host", `"n03"`},
		"another's host":     {with(`"host":"n02"`, `"host":"n01"`), "line 4", "rank", ""},
		"unknown peer":       {with(`"peer":"n01"`, `"peer":"n03"`), "line 4", "peer", `"n03"`},
		"no such rank":       {with(`"peer_rank":0`, `"peer_rank":2`), "line 4", "peer_rank", "0 to 1"},
		"transport twice":    {lines(header, rank0, rank1, sent, sent, end(0)), "line 5", "rank", ""},
		"omitted elsewhere":  {lines(header, rank0, rank1, `{"kind":"omitted","host":"n03","what":"disk","text":"x"}`, end(0)), "line 4", "host", `"n03"`},
		"omitted silently":   {lines(header, rank0, rank1, `{"kind":"omitted","host":"n01","what":"disk"}`, end(0)), "line 4", "what", ""},
		"omitted too often":  {lines(header, rank0, rank1, lacks, lacks, lacks, end(0)), "line 6", "what", ""},
		"deep":               {lines(header, `{"kind":"x","a":[[[[[]]]]]}`, end(0)), "line 2", "output", ""},
		"an oversized line":  {lines(header, `{"kind":"x","a":"`+strings.Repeat("a", 1<<20)+`"}`, end(0)), "line 2", "output", "65536"},
	} {
		l, err := read(c.text)
		var e *muster.Error
		if !errors.As(err, &e) || e.Code != muster.EInvalid || len(e.Problems) == 0 {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if p := e.Problems[0]; p.Place != c.at || p.Field != c.field || !strings.Contains(p.Message, c.names) {
			t.Errorf("%s: %q %q at %s, want %q %q at %s", name, p.Field, p.Message, p.Place, c.field, c.names, c.at)
		}
		if l.Samples != nil || l.Ranks != nil {
			t.Errorf("%s: something was read all the same", name)
		}
	}
}

func TestReadTellsAllProblems(t *testing.T) {
	t.Parallel()
	bad := strings.Replace(good, "2.5e9", "-1", 1)
	_, err := read(lines(header, rank0, rank1, bad, good, bad, end(3)))
	var e *muster.Error
	if !errors.As(err, &e) || len(e.Problems) != 2 || e.Problems[1].Place != "line 6" {
		t.Errorf("%+v", err)
	}
	_, err = read(lines(header, rank0, rank1) + strings.Repeat(bad+"\n", 1000))
	if !errors.As(err, &e) || len(e.Problems) != 20 {
		t.Errorf("%d problems are told", len(e.Problems))
	}
}

func TestReadIsBounded(t *testing.T) {
	t.Parallel()
	start := lines(header, rank0, rank1)
	for name, c := range map[string]struct {
		text string
		lim  analysis.Limits
		says string
	}{
		"samples": {start + strings.Repeat(good+"\n", 4) + end(4) + "\n", analysis.Limits{LineBytes: 4096, Bytes: 1 << 20, Samples: 3, Ranks: 8}, "3"},
		"bytes":   {start + strings.Repeat(good+"\n", 4) + end(4) + "\n", analysis.Limits{LineBytes: 4096, Bytes: 1000, Samples: 30, Ranks: 8}, "1000"},
		"ranks":   {start + end(0) + "\n", analysis.Limits{LineBytes: 4096, Bytes: 1 << 20, Samples: 3, Ranks: 1}, "1 to 1"},
		"line":    {start + end(0) + "\n", analysis.Limits{LineBytes: 20, Bytes: 1 << 20, Samples: 3, Ranks: 8}, "20"},
	} {
		if _, err := analysis.Read(strings.NewReader(c.text), c.lim); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	exact := start + good + "\n" + end(1) + "\n"
	if _, err := analysis.Read(strings.NewReader(exact), analysis.Limits{LineBytes: len(header) + 1, Bytes: int64(len(exact)), Samples: 1, Ranks: 2}); err != nil {
		t.Errorf("just within its limits: %v", err)
	}
	// An endless line costs no more than the limit.
	if _, err := analysis.Read(io.MultiReader(strings.NewReader(start), endless{}), analysis.DefaultLimits()); err == nil {
		t.Error("an endless line was read")
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'a'
	}
	return len(p), nil
}

func TestReadTellsOfBrokenInput(t *testing.T) {
	t.Parallel()
	_, err := analysis.Read(io.MultiReader(strings.NewReader(lines(header)), iotest.ErrReader(os.ErrDeadlineExceeded)), analysis.DefaultLimits())
	if muster.CodeOf(err) != muster.EUnavailable || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%v", err)
	}
	// However few bytes come at once.
	if _, err := analysis.Read(iotest.OneByteReader(strings.NewReader(lines(header, rank0, rank1, end(0)))), analysis.DefaultLimits()); err != nil {
		t.Error(err)
	}
}

func TestMetricUnit(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"dgemm": "flop/s", "core.int.sort": "op/s", "core.int.": "", "core.int.a.b": "", "core.int.*": "", "stream": "", "": "", "noise.share": "1",
	} {
		if unit, ok := analysis.MetricUnit(name); unit != want || ok != (want != "") {
			t.Errorf("%s: %q, %v", name, unit, ok)
		}
	}
	if !analysis.LessIsBetter("s") || analysis.LessIsBetter("B/s") {
		t.Error("times are better when less, rates are not")
	}
}

// FuzzRead looks for input that makes Read fall over, or believe what it must not.
func FuzzRead(f *testing.F) {
	f.Add([]byte(lines(header, rank0, rank1, good, wrong, sent, end(2))))
	f.Add([]byte(lines(header, rank0, rank1, good)))
	f.Add([]byte(lines(header, rank0, rank1, lacks, end(0))))
	f.Add([]byte(lines(header, rank0, rank1, strings.Replace(good, "2.5e9", "1e-320", 1), end(1))))
	f.Add([]byte("{}\n{\"kind\":[]}\n"))
	for metric, more := range map[string]string{"size.bandwidth": `"mean":2.1e9`, "streams.tcp.bandwidth": `"streams":4`, "streams.udp.bandwidth": `"offered":1e8`, "clients.read": `"mean":2.5e9`} {
		mode, _, _ := strings.Cut(metric, ".")
		if mode == "size" {
			mode = "sizes"
		}
		swept := strings.NewReplacer("pair.bandwidth", metric, `"max"`, more+`,"max"`).Replace(good)
		f.Add([]byte(lines(strings.Replace(header, `"pairs"`, `"`+mode+`"`, 1), rank0, rank1, swept, end(1))))
	}
	lim := analysis.Limits{LineBytes: 4096, Bytes: 1 << 16, Samples: 100, Ranks: 16}
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := analysis.Read(strings.NewReader(string(data)), lim)
		if err != nil {
			var e *muster.Error
			if !errors.As(err, &e) || len(e.Problems) == 0 || len(e.Problems) > 20 {
				t.Fatalf("%v", err)
			}
			for _, p := range e.Problems {
				if !strings.HasPrefix(p.Place, "line ") || len(p.Message) > 400 {
					t.Fatalf("problem %+v", p)
				}
			}
			return
		}
		if len(l.Ranks) == 0 || len(l.Ranks) > lim.Ranks || len(l.Samples)+len(l.Findings) > lim.Samples || data[len(data)-1] != '\n' {
			t.Fatalf("%+v", l)
		}
		for _, o := range l.Omitted {
			if o.What == "" || o.Text == "" || len(o.Text) > 300 || len(l.Omitted) > len(l.Ranks) {
				t.Fatalf("%+v", o)
			}
		}
		for _, s := range l.Samples {
			unit, ok := analysis.MetricUnit(s.Metric)
			if !ok {
				unit, ok = analysis.SweepUnit(s.Metric)
			}
			if !ok || unit != s.Unit || !(s.Min <= s.Mean && s.Mean <= s.Max) || s.Streams < 0 || !(s.Offered >= 0) || !(s.Value >= 0 && s.Min <= s.Value && s.Value <= s.Max && s.Max <= 1e18) || s.N < 1 {
				t.Fatalf("%+v", s)
			}
			if s.Rank >= 0 && l.Ranks[s.Rank].Host != s.Host {
				t.Fatalf("%+v of %+v", s, l.Ranks)
			}
		}
		curves, _ := analysis.Sweeps([]analysis.Node{{Name: "n01"}, {Name: "n02"}}, []analysis.Launch{l})
		for _, c := range curves {
			for i, p := range c.Points {
				if !(p.At > 0 && p.At <= 1<<63) || i > 0 && p.At <= c.Points[i-1].At || !(p.Min <= p.Median && p.Median <= p.Max && p.Min <= p.Mean && p.Mean <= p.Max) || p.Samples < p.Launches {
					t.Fatalf("%+v", c)
				}
			}
		}
	})
}
