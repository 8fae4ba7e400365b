package diskbench

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"syscall"

	"github.com/muster-hpc/muster/agent/rendezvous"
)

// report is what fio prints, as far as it is used.
type report struct {
	Jobs []reportedJob `json:"jobs"`
}

type reportedJob struct {
	Name  string  `json:"jobname"`
	Error int     `json:"error"`
	Read  pattern `json:"read"`
	Write pattern `json:"write"`
}

// pattern is what was read, or written.
type pattern struct {
	Operations int64   `json:"total_ios"`
	Runtime    float64 `json:"runtime"` // ms
	Bandwidth  float64 `json:"bw_bytes"`
	BWMin      float64 `json:"bw_min"` // KiB/s, of parts of half a second
	BWMax      float64 `json:"bw_max"`
	BWSamples  int64   `json:"bw_samples"`
	IOPS       float64 `json:"iops"`
	IOPSMin    float64 `json:"iops_min"`
	IOPSMax    float64 `json:"iops_max"`
	IOPSParts  int64   `json:"iops_samples"`
	Completion struct {
		Min        float64            `json:"min"` // ns
		Max        float64            `json:"max"`
		Percentile map[string]float64 `json:"percentile"`
	} `json:"clat_ns"`
}

// mostParts is how many parts of a run are believed.
const mostParts = 1 << 40

// readReport makes samples of what fio printed. A job that the kernel had an error
// for makes one that is not OK; what is no report of all jobs is an error. fio may
// complain before its report.
func readReport(out []byte) ([]rendezvous.Sample, error) {
	begin := bytes.Index(out, []byte("{\n"))
	if begin < 0 {
		return nil, errors.New("fio printed no report" + said(out))
	}
	var r report
	if err := json.NewDecoder(bytes.NewReader(out[begin:])).Decode(&r); err != nil {
		return nil, errors.New("the report of fio cannot be read" + said(out[:begin]))
	}
	var list []rendezvous.Sample
	for _, j := range jobs() {
		var found *reportedJob
		for i := range r.Jobs {
			if r.Jobs[i].Name == j.name {
				found = &r.Jobs[i]
			}
		}
		if found == nil {
			return nil, fmt.Errorf("fio says nothing of %s%s", j.name, said(out[:begin]))
		}
		p := found.Read
		if strings.Contains(j.rw, "write") {
			p = found.Write
		}
		some, err := j.samples(p, found.Error)
		if err != nil {
			return nil, fmt.Errorf("%w%s", err, said(out[:begin]))
		}
		list = append(list, some...)
	}
	return list, nil
}

// said are the words of fio beside its report.
func said(out []byte) string {
	const enough = 150
	words := strings.Join(strings.Fields(strings.ToValidUTF8(string(out), "")), " ")
	if words == "" {
		return ""
	}
	return ": " + strings.ToValidUTF8(words[:min(len(words), enough)], "")
}

// samples are the figures of a job.
func (j job) samples(p pattern, code int) ([]rendezvous.Sample, error) {
	var list []rendezvous.Sample
	var wrong error
	add := func(metric, unit string, value, low, high float64, n int64) {
		s := rendezvous.Sample{Metric: metric, Unit: unit, Size: int64(j.size), Value: value, OK: true, Seconds: p.Runtime / 1000}
		// Extremes are of parts of the run, or of the rounding of a histogram: they are
		// where the value is at least.
		s.Min, s.Max = value, value
		if low > 0 {
			s.Min = min(low, value)
		}
		if high > 0 {
			s.Max = max(high, value)
		}
		s.N = int(max(1, min(n, mostParts)))
		switch {
		case code != 0:
			s.OK, s.Check = false, fmt.Sprintf("the kernel has error %d: %v", code, syscall.Errno(code&0xfff))
			s.Value, s.Min, s.Max, s.Seconds = 0, 0, 0, 0
		case p.Operations <= 0 || !(p.Runtime > 0) || p.Runtime > 1e9:
			wrong = fmt.Errorf("fio did nothing of %s", j.name)
		case !believable(s.Min) || !believable(s.Value) || !believable(s.Max):
			wrong = fmt.Errorf("fio says of %s %g, from %g to %g", j.name, value, low, high)
		}
		list = append(list, s)
	}
	switch {
	case j.bandwidth != "":
		add(j.bandwidth, "B/s", p.Bandwidth, 1024*p.BWMin, 1024*p.BWMax, p.BWSamples)
	case j.operations != "":
		add(j.operations, "op/s", p.IOPS, p.IOPSMin, p.IOPSMax, p.IOPSParts)
	default:
		const ns = 1e-9
		c := p.Completion
		add(j.latency, "s", c.Percentile["50.000000"]*ns, c.Min*ns, c.Max*ns, p.Operations)
		add(j.latency+".p99", "s", c.Percentile["99.000000"]*ns, c.Min*ns, c.Max*ns, p.Operations)
	}
	return list, wrong
}

// believable reports whether a figure is one. The server has bounds of its own.
func believable(v float64) bool { return v > 0 && v < 1e14 && !math.IsNaN(v) }
