package admit_test

import (
	"fmt"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/admit"
	"github.com/muster-hpc/muster/control/place"
)

// bigSite has 10,000 machines of ten classes in 250 racks.
func bigSite() []muster.Machine {
	var list []muster.Machine
	for class := range 10 {
		list = append(list, rackOf(1000, fmt.Sprintf("class%d", class), 16<<(class%4), 64<<30, func(i int, m *muster.Machine) {
			m.ID = muster.MachineID(fmt.Sprintf("m%d-%04d", class, i))
			m.Facts.Rack = fmt.Sprintf("r%03d", (class*1000+i)/40)
			m.Facts.Modalias = []string{"pci:v00008086d1521", "pci:v00008086d1522", "virtio:d00000001v1"}
			if i%3 == 0 {
				busy(1)(0, m)
			}
		})...)
	}
	return list
}

func benchImage() *muster.Image {
	image := hpc()
	for i := range 20000 { // as many as a distribution kernel has
		image.Modaliases = append(image.Modaliases, fmt.Sprintf("pci:v%08Xd%08Xsv*sd*bc*sc*i*", i%97, i))
	}
	return image
}

func BenchmarkAnswer(b *testing.B) {
	machines := bigSite()
	image := benchImage()
	cores := muster.Quantity{Op: muster.AtLeast, Value: 16}
	wish := muster.Constraints{Processor: "EPYC*", Cores: cores, Memory: muster.Quantity{Op: muster.AtLeast, Value: 32 << 30}, NICSpeed: muster.Quantity{Op: muster.AtLeast, Value: 10e9}}
	ask := func(nodes int, placement muster.Placement) muster.Spec {
		return muster.Spec{Nodes: nodes, Min: nodes, Head: muster.HeadSeparate, Placement: placement, Machine: wish}
	}
	mixed := ask(4000, muster.PlaceSpread)
	mixed.Mixed = true
	var ahead []admit.Waiting
	for i := range 10 {
		ahead = append(ahead, admit.Waiting{Cluster: muster.ClusterID(fmt.Sprint("c-", i)), Spec: ask(900, muster.PlacePack), Image: image})
	}
	for _, c := range []struct {
		name    string
		spec    muster.Spec
		ahead   []admit.Waiting
		verdict muster.Verdict
	}{
		{"pack 256", ask(256, muster.PlacePack), nil, muster.VerdictNow},
		{"spread 4000 mixed", mixed, nil, muster.VerdictNow},
		{"queued", ask(900, muster.PlacePack), nil, muster.VerdictQueued},
		{"never", ask(4000, muster.PlacePack), nil, muster.VerdictNever},
		{"ten ahead", ask(16, muster.PlacePack), ahead, muster.VerdictQueued},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				a := admit.Answer("c-1", c.spec, image, admit.Snapshot{Now: now, Machines: machines, Ahead: c.ahead}, place.Planner{})
				if a.Verdict != c.verdict {
					b.Fatalf("%s", a.Verdict)
				}
			}
		})
	}
}
