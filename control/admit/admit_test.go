package admit_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/admit"
	"github.com/muster-hpc/muster/control/place"
	"pgregory.net/rapid"
)

var now = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

func hpc() *muster.Image {
	return &muster.Image{
		ID: "sha256:aa", Name: "hpc", Architecture: "amd64",
		Requires:   muster.ImageNeeds{Memory: 1 << 30, CPULevel: 2},
		Files:      []muster.ImageFile{{Role: muster.FileRoot, Size: 1 << 30}},
		Modaliases: []string{"pci:v00008086d*", "virtio:d0000000[12]v*"},
	}
}

func anyMachine(t *rapid.T, i int) muster.Machine {
	pick := func(what string, list ...int) int { return rapid.SampledFrom(list).Draw(t, what) }
	phases := append(slices.Repeat([]muster.MachinePhase{muster.MachineFree}, 12), muster.MachinePhases()...)
	m := muster.Machine{
		ID:       muster.MachineID(fmt.Sprintf("m%03d", i)),
		Provider: rapid.SampledFrom([]string{"metal", "metal", "local"}).Draw(t, "provider"),
		Phase:    rapid.SampledFrom(phases).Draw(t, "phase"),
		LastSeen: now.Add(-time.Duration(pick("silent", 0, 0, 0, 0, 100)) * time.Second),
		Facts: muster.Facts{
			Architecture: rapid.SampledFrom([]string{"amd64", "amd64", "amd64", "arm64"}).Draw(t, "architecture"),
			Processor:    rapid.SampledFrom([]string{"AMD EPYC 7763 64-Core Processor", "Intel(R) Xeon(R) Gold 6130"}).Draw(t, "processor"),
			CPULevel:     pick("level", 3, 3, 3, 1),
			Cores:        pick("cores", 2, 4, 8),
			Memory:       int64(pick("memory", 1, 2, 4, 8)) << 30,
			Disk:         int64(pick("disk", 0, 100)) << 30,
			Class:        rapid.SampledFrom([]string{"a", "b"}).Draw(t, "class"),
			Rack:         rapid.SampledFrom([]string{"r1", "r2"}).Draw(t, "rack"),
			Service:      pick("service", 0, 0, 0, 0, 1) == 1,
			NICs:         []muster.NIC{{Kind: "ethernet", Speed: 1e9, Use: "management"}},
		},
	}
	for range pick("nics", 1, 1, 2) {
		m.Facts.NICs = append(m.Facts.NICs, muster.NIC{Kind: rapid.SampledFrom([]string{"ethernet", "infiniband"}).Draw(t, "kind"), Speed: int64(pick("speed", 1, 10, 100)) * 1e9, Use: "message"})
	}
	if n := pick("gpus", 0, 0, 2); n > 0 {
		m.Facts.Accelerators = []muster.Device{{Kind: "gpu", Model: "NVIDIA H100", Count: n}}
	}
	if pick("device", 0, 0, 0, 1) == 1 {
		m.Facts.Modalias = []string{rapid.SampledFrom([]string{"pci:v00008086d1", "pci:v00001234d1", "virtio:d00000001v1"}).Draw(t, "modalias")}
	}
	if m.Phase.Held() {
		m.Cluster, m.Node = "c-other", "n01"
	}
	m.Intent = rapid.SampledFrom([]muster.Intent{"", "", "", "", "", "", muster.IntentDrain, muster.IntentMaintenance, muster.IntentTest, muster.IntentRetire}).Draw(t, "intent")
	return m
}

func anySite(t *rapid.T) []muster.Machine {
	n := rapid.IntRange(0, 30).Draw(t, "machines")
	list := make([]muster.Machine, n)
	for i := range list {
		list[i] = anyMachine(t, i)
	}
	return list
}

func quantity(t *rapid.T, what string, values ...int64) muster.Quantity {
	if rapid.IntRange(0, 7).Draw(t, "asks "+what) > 0 {
		return muster.Quantity{}
	}
	op := rapid.SampledFrom([]muster.Op{muster.AtLeast, muster.AtLeast, muster.AtMost, muster.Exactly, muster.More, muster.Less}).Draw(t, what+" op")
	return muster.Quantity{Op: op, Value: rapid.SampledFrom(values).Draw(t, what)}
}

func pattern(t *rapid.T, what string, values ...string) string {
	if rapid.IntRange(0, 7).Draw(t, "asks "+what) > 0 {
		return ""
	}
	return rapid.SampledFrom(values).Draw(t, what)
}

func anySpec(t *rapid.T) muster.Spec {
	s := muster.Spec{
		Name: "x", Nodes: rapid.IntRange(1, 8).Draw(t, "nodes"), Queue: true, Image: "hpc",
		Mixed:     rapid.Bool().Draw(t, "mixed"),
		Head:      rapid.SampledFrom([]muster.HeadMode{muster.HeadSeparate, muster.HeadShared}).Draw(t, "head"),
		Placement: rapid.SampledFrom([]muster.Placement{muster.PlacePack, muster.PlaceSpread, muster.PlaceAny}).Draw(t, "placement"),
		Within:    rapid.SampledFrom([]string{"", "", "rack"}).Draw(t, "within"),
		Machine: muster.Constraints{
			Provider:     pattern(t, "provider", "metal", "loc*", "x"),
			Architecture: pattern(t, "architecture", "amd64", "arm64"),
			Processor:    pattern(t, "processor", "EPYC*", "xeon", "POWER*"),
			Class:        pattern(t, "class", "a", "b", "?"),
			Rack:         pattern(t, "rack", "r1", "r*"),
			Cores:        quantity(t, "cores", 2, 4, 8, 16),
			Memory:       quantity(t, "memory", 2<<30, 4<<30),
			Disk:         quantity(t, "disk", 1<<30, 200<<30),
			NICs:         quantity(t, "nics", 1, 2, 3),
			NICSpeed:     quantity(t, "speed", 10e9, 100e9),
			NICKind:      pattern(t, "kind", "ethernet", "inf*"),
			Accelerators: quantity(t, "accelerators", 1, 2),
			Accelerator:  pattern(t, "accelerator", "H100", "*A100"),
		},
	}
	s.Min = rapid.IntRange(1, s.Nodes).Draw(t, "min")
	return s
}

func snapshot(machines []muster.Machine) admit.Snapshot {
	return admit.Snapshot{Now: now, Machines: machines, Silence: time.Minute, Providers: muster.Providers{"local": {}}}
}

func answer(id muster.ClusterID, s muster.Spec, snap admit.Snapshot) muster.Answer {
	return admit.Answer(id, s, hpc(), snap, place.Planner{})
}

// Every machine is counted once; the plan holds only machines that are free
// and fit; all or nothing, but for min; every refusal says what to change.
func TestAnswerAccountsForEverything(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		machines, spec := anySite(t), anySpec(t)
		a := answer("c-1", spec, snapshot(machines))
		total, held := a.Free, 0
		order := -1
		for _, r := range a.Rejections {
			total += r.Count
			i := slices.Index(admit.Reasons(), r.Reason)
			if i <= order {
				t.Fatalf("reasons out of order or unknown: %v", a.Rejections)
			}
			order = i
			if i >= slices.Index(admit.Reasons(), admit.ReasonMaintenance) {
				held += r.Count
			}
			if len(r.Sample) != min(r.Count, 5) || r.Count == 0 || !strings.HasPrefix(r.Text, r.Reason+": ") {
				t.Fatalf("%+v", r)
			}
		}
		if total != len(machines) || a.Fits != a.Free+held {
			t.Fatalf("%d of %d machines counted; %+v", total, len(machines), a)
		}
		if a.Verdict == muster.VerdictNow {
			checkPlan(t, spec, machines, a)
		} else if a.Plan != nil || len(a.Change) == 0 {
			t.Fatalf("%+v", a)
		}
	})
}

func checkPlan(t *rapid.T, spec muster.Spec, machines []muster.Machine, a muster.Answer) {
	if err := (place.Planner{}).Verify(*a.Plan, machines); err != nil {
		t.Fatal(err)
	}
	nodes := 0
	for _, s := range a.Plan.Assign {
		i := slices.IndexFunc(machines, func(m muster.Machine) bool { return m.ID == s.Machine })
		m := machines[i]
		if m.Phase != muster.MachineFree || m.Intent != "" || now.Sub(m.LastSeen) > time.Minute || m.Facts.Architecture != "amd64" || m.Facts.CPULevel < 2 {
			t.Fatalf("%+v is in the plan", m)
		}
		if s.Role == muster.RoleHead {
			continue
		}
		nodes++
		w := spec.Machine
		if !w.Cores.Met(int64(m.Facts.Cores)) || !w.Memory.Met(m.Facts.Memory) || !w.Disk.Met(m.Facts.Disk) ||
			(m.Provider == "metal" && m.Facts.Memory < 2<<30) {
			t.Fatalf("%+v is in the plan", m)
		}
	}
	if nodes < spec.Min || nodes > spec.Nodes {
		t.Fatalf("%d nodes of %d to %d", nodes, spec.Min, spec.Nodes)
	}
}

// The order of the machines means nothing, and an answer repeats itself.
func TestAnswerIsDeterministic(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		machines, spec := anySite(t), anySpec(t)
		a, _ := json.Marshal(answer("c-1", spec, snapshot(machines)))
		other := rapid.Permutation(machines).Draw(t, "order")
		b, _ := json.Marshal(answer("c-1", spec, snapshot(other)))
		if string(a) != string(b) {
			t.Fatalf("\n%s\n%s", a, b)
		}
	})
}

// What is kept for repairs is not taken, counted as reserved, and holds up only
// those who could use it.
func TestKeptForRepairs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		machines, spec := anySite(t), anySpec(t)
		snap := snapshot(machines)
		before := answer("c-1", spec, snap)
		snap.ReservedForRepair = map[muster.MachineID]bool{}
		fewer := slices.Clone(machines)
		for _, m := range machines {
			if rapid.IntRange(0, 3).Draw(t, "kept") == 0 {
				snap.ReservedForRepair[m.ID] = true
			}
		}
		a := answer("c-1", spec, snap)
		if rank(a.Verdict) > rank(before.Verdict) || a.Fits != before.Fits {
			t.Fatalf("%s with machines kept, %s without", a.Verdict, before.Verdict)
		}
		if a.Verdict == muster.VerdictNow {
			checkPlan(t, spec, machines, a)
			for _, s := range a.Plan.Assign {
				if snap.ReservedForRepair[s.Machine] {
					t.Fatalf("%s is kept for a repair and in the plan", s.Machine)
				}
			}
		}
		// The same as if they were not there, but for never.
		fewer = slices.DeleteFunc(fewer, func(m muster.Machine) bool { return snap.ReservedForRepair[m.ID] })
		without := answer("c-1", spec, snapshot(fewer))
		if (without.Verdict == muster.VerdictNow) != (a.Verdict == muster.VerdictNow) {
			t.Fatalf("%s with machines kept, %s were they not there", a.Verdict, without.Verdict)
		}
	})
}

func rank(v muster.Verdict) int {
	return slices.Index([]muster.Verdict{muster.VerdictNever, muster.VerdictQueued, muster.VerdictNow}, v)
}

// Asking for less never gives a worse answer.
func TestRelaxingNeverHurts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		machines, spec := anySite(t), anySpec(t)
		before := answer("c-1", spec, snapshot(machines))
		for name, relax := range map[string]func(*muster.Spec){
			"nodes":        func(s *muster.Spec) { s.Nodes = max(1, s.Nodes-1); s.Min = min(s.Min, s.Nodes) },
			"min":          func(s *muster.Spec) { s.Min = max(1, s.Min-1) },
			"mixed":        func(s *muster.Spec) { s.Mixed = true },
			"within":       func(s *muster.Spec) { s.Within = "" },
			"head":         func(s *muster.Spec) { s.Head = muster.HeadShared },
			"provider":     func(s *muster.Spec) { s.Machine.Provider = "" },
			"architecture": func(s *muster.Spec) { s.Machine.Architecture = "" },
			"processor":    func(s *muster.Spec) { s.Machine.Processor = "" },
			"rack":         func(s *muster.Spec) { s.Machine.Rack = "" },
			"cores":        func(s *muster.Spec) { s.Machine.Cores = muster.Quantity{} },
			"memory":       func(s *muster.Spec) { s.Machine.Memory = muster.Quantity{} },
			"disk":         func(s *muster.Spec) { s.Machine.Disk = muster.Quantity{} },
			"nics":         func(s *muster.Spec) { s.Machine.NICs = muster.Quantity{} },
			"nic-speed":    func(s *muster.Spec) { s.Machine.NICSpeed = muster.Quantity{} },
			"accelerators": func(s *muster.Spec) { s.Machine.Accelerators = muster.Quantity{}; s.Machine.Accelerator = "" },
		} {
			less := spec
			relax(&less)
			if after := answer("c-1", less, snapshot(machines)); rank(after.Verdict) < rank(before.Verdict) {
				t.Fatalf("%s: %s became %s", name, before.Verdict, after.Verdict)
			}
		}
	})
}

// What the answer says to ask for instead is served.
func TestChangesAreTrue(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		machines, spec := anySite(t), anySpec(t)
		a := answer("c-1", spec, snapshot(machines))
		for _, text := range a.Change {
			s := spec
			var n int
			w := &s.Machine
			scan := func(format string, into ...any) bool {
				k, _ := fmt.Sscanf(text, format, into...)
				return k == len(into)
			}
			var v int64
			switch {
			case scan("ask for nodes: %d", &n):
				s.Nodes, s.Min = n, n
			case strings.HasPrefix(text, "say mixed"):
				s.Mixed = true
			case scan("ask for within: %s", &s.Within):
				s.Within = strings.TrimSuffix(s.Within, ":")
			case strings.HasPrefix(text, "say head: shared"):
				s.Head = muster.HeadShared
			case scan("ask for cores: >=%d", &v):
				w.Cores = muster.Quantity{Op: muster.AtLeast, Value: v}
			case scan("ask for cores: <=%d", &v):
				w.Cores = muster.Quantity{Op: muster.AtMost, Value: v}
			case scan("ask for memory: >=%dGiB", &v):
				w.Memory = muster.Quantity{Op: muster.AtLeast, Value: v << 30}
			case scan("ask for memory: <=%dGiB", &v):
				w.Memory = muster.Quantity{Op: muster.AtMost, Value: v << 30}
			case scan("ask for nics: >=%d", &v):
				w.NICs = muster.Quantity{Op: muster.AtLeast, Value: v}
			case scan("ask for accelerators: >=%d", &v):
				w.Accelerators = muster.Quantity{Op: muster.AtLeast, Value: v}
			case scan("ask for class: %s", &w.Class), scan("ask for rack: %s", &w.Rack), scan("ask for provider: %s", &w.Provider),
				scan("ask for architecture: %s", &w.Architecture):
				for _, p := range []*string{&w.Class, &w.Rack, &w.Provider, &w.Architecture} {
					*p = strings.TrimSuffix(*p, ":")
				}
			case strings.HasPrefix(text, "leave out provider"):
				w.Provider = ""
			case strings.HasPrefix(text, "leave out processor"):
				w.Processor = ""
			case strings.HasPrefix(text, "leave out cores"):
				w.Cores = muster.Quantity{}
			case strings.HasPrefix(text, "leave out memory"):
				w.Memory = muster.Quantity{}
			default:
				continue
			}
			after := answer("c-1", s, snapshot(machines))
			if rank(after.Verdict) <= rank(a.Verdict) {
				t.Fatalf("%q: %s became %s\n%+v", text, a.Verdict, after.Verdict, a)
			}
		}
	})
}

// Requests are served in the end, in whatever way others come and go: the
// first in the queue gets its machines once those who hold them have ended.
func TestNoStarvation(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		machines := anySite(t)
		for i := range machines {
			machines[i].Phase, machines[i].Cluster, machines[i].Node, machines[i].Intent = muster.MachineFree, "", "", ""
			machines[i].LastSeen = now
		}
		var queue []admit.Waiting
		running := make(map[muster.ClusterID][]muster.MachineID)
		var order []muster.ClusterID // running, oldest first
		set := func(ids []muster.MachineID, c muster.ClusterID) {
			for i := range machines {
				if slices.Contains(ids, machines[i].ID) {
					machines[i].Phase, machines[i].Cluster = muster.MachineFree, ""
					if c != "" {
						machines[i].Phase, machines[i].Cluster = muster.MachineActive, c
					}
				}
			}
		}
		// try serves w if it may go; ahead are those who wait before it.
		try := func(w admit.Waiting, ahead []admit.Waiting) muster.Verdict {
			snap := snapshot(machines)
			snap.Ahead = ahead
			a := answer(w.Cluster, w.Spec, snap)
			if a.Verdict == muster.VerdictNow {
				var ids []muster.MachineID
				for _, s := range a.Plan.Assign {
					if slices.ContainsFunc(machines, func(m muster.Machine) bool { return m.ID == s.Machine && m.Cluster != "" }) {
						t.Fatalf("machine %s is given twice", s.Machine)
					}
					ids = append(ids, s.Machine)
				}
				set(ids, w.Cluster)
				running[w.Cluster], order = ids, append(order, w.Cluster)
			}
			return a.Verdict
		}
		var first muster.ClusterID // at the head of the queue
		ended := 0                 // clusters that ended since it came there
		deadline := 0
		for step := range rapid.IntRange(1, 25).Draw(t, "steps") {
			w := admit.Waiting{Cluster: muster.ClusterID(fmt.Sprintf("c-%d", step)), Spec: anySpec(t), Image: hpc()}
			if try(w, queue) == muster.VerdictQueued {
				queue = append(queue, w)
			}
			if len(queue) > 0 && queue[0].Cluster != first {
				first, ended, deadline = queue[0].Cluster, 0, len(order)
			}
			if len(order) > 0 && rapid.Bool().Draw(t, "end") {
				set(running[order[0]], "")
				order = order[1:]
				ended++
				for i := 0; i < len(queue); {
					if try(queue[i], queue[:i]) == muster.VerdictNow {
						queue = slices.Delete(queue, i, i+1)
						continue
					}
					i++
				}
			}
			if len(queue) > 0 && queue[0].Cluster == first && ended >= deadline && deadline > 0 {
				t.Fatalf("%s waits although all %d clusters that ran when it came first have ended", first, deadline)
			}
		}
	})
}
