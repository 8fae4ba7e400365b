package diskbench

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-hpc/muster/agent/rendezvous"
)

// captured reads what fio really printed.
func captured(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// What the fio of either Debian prints is read, to the digit.
func TestReadReport(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]map[string][3]float64{
		"fio-3.33.json": fio333(), "fio-3.39.json": fio339(),
	} {
		list, err := readReport(captured(t, name))
		if err != nil || len(list) != len(want) {
			t.Errorf("%s: %d samples, %v", name, len(list), err)
			continue
		}
		for _, s := range list {
			w := want[s.Metric]
			if !s.OK || !near(s.Value, w[0]) || !near(s.Min, w[1]) || !near(s.Max, w[2]) || s.N < 1 || s.Seconds < 0.25 || s.Seconds > 1 {
				t.Errorf("%s: %+v, not %v", name, s, w)
			}
			if size := int64(map[bool]int{true: blockBytes, false: pageBytes}[s.Unit == "B/s"]); s.Size != size {
				t.Errorf("%s: %s is of %d bytes", name, s.Metric, s.Size)
			}
		}
	}
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Abs(b) }

// What is no report, or is of something that failed, becomes no figure.
func TestReadReportRefuses(t *testing.T) {
	t.Parallel()
	whole := string(captured(t, "fio-3.39.json"))
	for name, out := range map[string]string{
		"nothing":    "",
		"words":      "fio: engine libaio not loadable\n",
		"cut off":    whole[:len(whole)/2],
		"no such":    strings.Replace(whole, `"jobname" : "read"`, `"jobname" : "raed"`, 1),
		"other kind": "{\n\"jobs\": {}}",
	} {
		if list, err := readReport([]byte(out)); err == nil {
			t.Errorf("%s: %+v", name, list)
		}
	}
	if _, err := readReport([]byte("fio: engine libaio not loadable\n")); err == nil || !strings.Contains(err.Error(), "not loadable") {
		t.Errorf("the words of fio are lost: %v", err)
	}
	// A complaint before the report does no harm; an error of a job is told.
	list, err := readReport([]byte("note: something\n" + strings.Replace(whole, `"error" : 0`, `"error" : 5`, 1)))
	if err != nil || list[0].OK || !strings.Contains(list[0].Check, "error 5: input/output error") || list[0].Value != 0 || !list[1].OK {
		t.Errorf("%v: %+v", err, list)
	}
	// The file was not there: fio exits without an error in its report.
	idle := strings.ReplaceAll(string(captured(t, "no-file.txt")), `"jobname" : "write"`, `"jobname" : "read"`)
	for _, j := range jobs() {
		one := strings.ReplaceAll(idle, `"jobname" : "read"`, `"jobname" : "`+j.name+`"`)
		found, err := readReport([]byte(one))
		if err == nil { // the others are missing
			t.Errorf("%s alone: %+v", j.name, found)
		}
	}
	if s, err := jobs()[0].samples(pattern{}, 0); err == nil || !strings.Contains(err.Error(), "nothing of write") {
		t.Errorf("%+v, %v", s, err)
	}
}

// Whatever fio prints, a sample is a figure that makes sense, or says what is wrong.
func FuzzReadReport(f *testing.F) {
	f.Add(captured(f, "fio-3.33.json"))
	f.Add(captured(f, "fio-3.39.json"))
	f.Add(captured(f, "no-file.txt"))
	f.Add([]byte("{\n\"jobs\":[{\"jobname\":\"read\",\"read\":{\"total_ios\":1,\"runtime\":1,\"bw_bytes\":-1e308,\"bw_max\":1e308,\"bw_samples\":-9}}]}"))
	f.Fuzz(func(t *testing.T, out []byte) {
		list, err := readReport(out)
		if err != nil {
			if len(err.Error()) > 400 {
				t.Errorf("%d bytes of words", len(err.Error()))
			}
			return
		}
		for _, s := range list {
			checkSample(t, s)
		}
	})
}

func checkSample(t *testing.T, s rendezvous.Sample) {
	t.Helper()
	switch {
	case !s.OK && s.Check == "":
		t.Errorf("nobody knows what is wrong: %+v", s)
	case s.OK && (!(s.Min > 0) || s.Min > s.Value || s.Value > s.Max || math.IsInf(s.Max, 0) || s.N < 1 || !(s.Seconds > 0)):
		t.Errorf("no figure: %+v", s)
	}
}

// What the reports show, calculated apart from the program.
func fio333() map[string][3]float64 {
	return map[string][3]float64{
		"disk.write":             {1769472000, 1769472000, 1769472000},
		"disk.read":              {602152554, 602152554, 602152554},
		"disk.random.write":      {19843.853821, 19843.853821, 19843.853821},
		"disk.random.read":       {27298.013245, 27298.013245, 27298.013245},
		"disk.latency.write":     {4.3264e-05, 3.8928e-05, 0.040034879},
		"disk.latency.write.p99": {0.00176128, 3.8928e-05, 0.040034879},
		"disk.latency.read":      {5.8112e-05, 4.3804e-05, 0.048091628},
		"disk.latency.read.p99":  {0.007897088, 4.3804e-05, 0.048091628},
	}
}
func fio339() map[string][3]float64 {
	return map[string][3]float64{
		"disk.write":             {2051864664, 2051864664, 2051864664},
		"disk.read":              {2658018232, 2658018232, 2658018232},
		"disk.random.write":      {135380.327869, 135380.327869, 135380.327869},
		"disk.random.read":       {138148.867314, 138148.867314, 138148.867314},
		"disk.latency.write":     {7.4e-07, 6.31e-07, 0.014385425},
		"disk.latency.write.p99": {1.112e-06, 6.31e-07, 0.014385425},
		"disk.latency.read":      {7.96e-07, 5.21e-07, 0.059175944},
		"disk.latency.read.p99":  {1.208e-06, 5.21e-07, 0.059175944},
	}
}
