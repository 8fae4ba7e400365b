package analysis_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/measure/analysis"
)

func candidates(n int, change func(i int, c *muster.TestEnvironment)) []analysis.Candidate {
	var list []analysis.Candidate
	for i := range n {
		c := muster.TestEnvironment{
			Processor: "Xeon", Cores: 2, Memory: 64<<30 + int64(i)<<20, Kernel: "6.12.1", ClockSource: "tsc", SMT: "on", MTU: []string{"msg0 9000"},
			Clock: &muster.ProcessorClock{Governor: "performance", Base: 2_900_000_000 + int64(i)*1000}, BLAS: &muster.Library{File: "/usr/lib/libopenblas.so"},
			NUMA: []muster.NUMA{{ID: 0, CPUs: []int{2 * i, 2*i + 1}}}, Pinning: string(rune('0' + i)),
		}
		change(i, &c)
		list = append(list, analysis.Candidate{Node: analysis.Node{Name: []string{"n01", "n02", "n03", "n04", "n05"}[i]}, Conditions: c})
	}
	return list
}

func TestDifferences(t *testing.T) {
	t.Parallel()
	if got := analysis.Differences(candidates(5, func(int, *muster.TestEnvironment) {})); got != nil {
		t.Errorf("slices that are alike: %+v", got)
	}
	for name, c := range map[string]struct {
		condition string
		change    func(*muster.TestEnvironment)
		value     string
	}{
		"mtu": {"mtu", func(c *muster.TestEnvironment) { c.MTU = []string{"msg0 1500"} }, "msg0 1500"},
		"governor": {"clock.governor", func(c *muster.TestEnvironment) {
			c.Clock = &muster.ProcessorClock{Governor: "powersave", Base: 2_900_000_000}
		}, "powersave"},
		"kernel line":  {"kernel_options", func(c *muster.TestEnvironment) { c.Options = []string{"mitigations=off"} }, "mitigations=off"},
		"kernel":       {"kernel", func(c *muster.TestEnvironment) { c.Kernel = "6.1" }, "6.1"},
		"blas":         {"blas", func(c *muster.TestEnvironment) { c.BLAS = &muster.Library{File: "/usr/lib/libblas.so"} }, "/usr/lib/libblas.so"},
		"firmware":     {"firmware", func(c *muster.TestEnvironment) { c.Firmware = "Dell 2.1" }, ""},
		"clock source": {"clock_source", func(c *muster.TestEnvironment) { c.ClockSource = "hpet" }, "hpet"},
		"numa":         {"numa", func(c *muster.TestEnvironment) { c.NUMA = []muster.NUMA{{CPUs: []int{0}}, {ID: 1, CPUs: []int{1}}} }, "1 threads, 1 threads"},
		"smt":          {"smt", func(c *muster.TestEnvironment) { c.SMT = "off" }, "off"},
		"memory":       {"memory", func(c *muster.TestEnvironment) { c.Memory = 48 << 30 }, "48 GiB"},
	} {
		nodes := candidates(5, func(i int, e *muster.TestEnvironment) {
			if i == 3 {
				c.change(e)
			}
		})
		got := analysis.Differences(nodes)
		if c.value == "" { // of the others it is not known
			if got != nil {
				t.Errorf("%s: %+v", name, got)
			}
			continue
		}
		if len(got) != 1 || got[0].Code != muster.FindingConditionsDiffer || got[0].Condition != c.condition || len(got[0].Values) != 2 ||
			got[0].Values[0].Nodes != "n[01-03,05]" || !reflect.DeepEqual(got[0].Values[1], muster.FindingValue{Value: c.value, Nodes: "n04"}) ||
			!strings.Contains(got[0].Text, c.value+" on n04") {
			t.Errorf("%s: %+v", name, got)
			continue
		}
		// It stands in the certificate of the whole and in that of the node, and is no verdict.
		s := analysis.Subject{Nodes: nodes, NewID: muster.NewCertificateID, Made: time.Unix(1e9, 0), Life: time.Hour}
		certs := analysis.NodeCertificates(s, analysis.Results{Findings: got})
		for i, n := range certs {
			if (len(n.Findings) == 1) != (i == 3) || n.Verdict != muster.GradeUnknown {
				t.Errorf("%s: %s has %+v", name, n.Node, n.Findings)
			}
		}
		if whole := analysis.Manifest(s, analysis.Results{Findings: got}, nil, nil); len(whole.Findings) != 1 || !whole.Normal() {
			t.Errorf("%s: %+v", name, whole)
		}
	}
}

// Whatever nodes say of themselves, what is made of it is short.
func TestDifferencesAreBounded(t *testing.T) {
	t.Parallel()
	nodes := candidates(5, func(i int, c *muster.TestEnvironment) { c.Kernel = strings.Repeat(string(rune('a'+i)), 10_000) })
	got := analysis.Differences(nodes)
	if len(got) != 1 || len(got[0].Values) != 5 || len(got[0].Text) > 2000 {
		t.Errorf("%+v", got)
	}
}
