package compare_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/measure/compare"
)

// Machines of one class in two data centres: a difference is told where it is more than what machines of the class
// differ by within each, and only then.
func TestCentres(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6))
	at := func(m muster.MachineID) string { return map[byte]string{'x': "X", 'y': "Y"}[m[0]] }
	certs := func(slow, noise float64, change func(*muster.Certificate)) (list []muster.Certificate) {
		for _, m := range []string{"x1", "x2", "x3", "y1", "y2", "y3"} {
			for i := range 3 {
				c := node(m, day(i))
				value := 100e9
				if m[0] == 'y' {
					value *= slow
					if change != nil {
						change(&c)
					}
				}
				c.Metrics = append(c.Metrics, metric(r, "stream.triad", value, noise, 5), metric(r, "dgemm", 1e12, 0.002, 5))
				list = append(list, c)
			}
		}
		return list
	}
	list, conditions := compare.Centres(certs(0.8, 0.005, nil), at)
	if len(list) != 1 || list[0].Name != "stream.triad" || list[0].Worse != "Y" || list[0].Loss < 0.17 || list[0].Loss > 0.23 || list[0].Machines != 6 || len(conditions) > 0 {
		t.Errorf("%+v %v", list, conditions)
	} else if text := list[0].String(); !strings.Contains(text, "% worse in Y than in X") {
		t.Error(text)
	}
	if list, _ := compare.Centres(certs(1, 0.005, nil), at); len(list) > 0 {
		t.Errorf("alike: %+v", list)
	}
	if list, _ := compare.Centres(certs(0.9, 0.3, nil), at); len(list) > 0 {
		t.Errorf("within what machines vary: %+v", list)
	}
	if list, _ := compare.Centres(certs(0.8, 0.005, func(c *muster.Certificate) { c.Certified = false }), at); len(list) > 0 {
		t.Errorf("not certified: %+v", list)
	}
	// Another processor: that is told, and figures are not compared.
	list, conditions = compare.Centres(certs(0.8, 0.005, func(c *muster.Certificate) { c.Conditions.Processor = "EPYC 7351" }), at)
	if len(list) > 0 || len(conditions) != 1 || conditions[0] != "processor: EPYC 9354 in X, EPYC 7351 in Y" {
		t.Errorf("%+v %v", list, conditions)
	}
}

// A history goes on when a site tells more levels apart than before: what is newer has the words that all know.
func TestLevels(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 8))
	of := func(n int, distance string) compare.Measurement {
		c := manifest(4, day(n))
		m := metric(r, "pair.bandwidth", 12e9, 0.01, 5)
		m.Distance = distance
		c.Pairs = &muster.Pairs{Metrics: []muster.Metric{m}}
		return compare.Measurement{At: day(n), Certificates: []muster.Certificate{c}}
	}
	var list []compare.Measurement
	for n := range 6 {
		list = append(list, of(n, "rack"))
	}
	for n := 6; n < 10; n++ {
		list = append(list, of(n, "leaf"))
	}
	h, err := compare.History(list, compare.UsualHistory())
	if err != nil {
		t.Fatal(err)
	}
	if len(h.Metrics) != 1 || h.Metrics[0].Distance != "rack" || len(h.Metrics[0].Points) != 10 {
		t.Errorf("%d metrics: %+v", len(h.Metrics), h.Metrics)
	}
	if list[9].Certificates[0].Pairs.Metrics[0].Distance != "leaf" {
		t.Error("what was given is changed")
	}
	h, err = compare.History(list[6:], compare.UsualHistory())
	if err != nil || len(h.Metrics) != 1 || h.Metrics[0].Distance != "leaf" {
		t.Errorf("%+v %v", h.Metrics, err)
	}
}
