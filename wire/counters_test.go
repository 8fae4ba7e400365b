package wire_test

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/muster-hpc/muster/wire"
)

func TestSince(t *testing.T) {
	t.Parallel()
	before := wire.Counters{Uptime: 100, Counts: wire.Counts{
		Cores: 2, User: 10, Idle: 5, Throttled: 1, Throttles: 3, Pressure: wire.Pressure{CPU: 2}, SwapIn: 4096, Load: 1,
		Processes: []wire.ProcessTime{{PID: 7, Name: "db", Started: 20, Seconds: 4}, {PID: 9, Name: "old", Started: 30, Seconds: 1}},
		Links:     []wire.LinkCounts{{Name: "msg0", Sent: 1000, Dropped: 5, Qdisc: "tbf", Rate: 1 << 20, Held: 7}},
	}}
	after := wire.Counters{Uptime: 104, Counts: wire.Counts{
		Cores: 2, User: 16, Idle: 7, Throttled: 2.5, Throttles: 9, Pressure: wire.Pressure{CPU: 5}, SwapIn: 4096, Load: 2,
		Processes: []wire.ProcessTime{
			{PID: 7, Name: "db", Started: 20, Seconds: 4.5}, {PID: 9, Name: "new", Started: 102, Seconds: 1.5}, {PID: 11, Name: "still", Started: 1, Seconds: 0},
		},
		Links: []wire.LinkCounts{{Name: "msg0", Sent: 5000, Dropped: 6, Qdisc: "tbf", Rate: 1 << 20, Held: 20}, {Name: "msg1", Sent: 3}},
	}}
	want := wire.Meanwhile{Seconds: 4, Counts: wire.Counts{
		Cores: 2, User: 6, Idle: 2, Throttled: 1.5, Throttles: 6, Pressure: wire.Pressure{CPU: 3}, Load: 2,
		Processes: []wire.ProcessTime{{PID: 9, Name: "new", Started: 102, Seconds: 1.5}, {PID: 7, Name: "db", Started: 20, Seconds: 0.5}},
		Links:     []wire.LinkCounts{{Name: "msg0", Sent: 4000, Dropped: 1, Qdisc: "tbf", Rate: 1 << 20, Held: 13}, {Name: "msg1", Sent: 3}},
	}}
	if got := after.Since(before); !reflect.DeepEqual(got, want) {
		t.Errorf("\n%+v\n%+v", got, want)
	}
	if before.Processes[0].Seconds != 4 || after.Links[0].Sent != 5000 {
		t.Error("the readings were changed")
	}
	// A node that started again counts from nothing.
	again := after
	again.Uptime = 3
	if got := again.Since(before); got.Seconds != 3 || got.User != 16 {
		t.Errorf("%+v", got)
	}
}

// A process that was below the list before had used no more than the last on it.
func TestAProcessThatWasNotListed(t *testing.T) {
	t.Parallel()
	before := wire.Counters{Uptime: 100}
	for i := range wire.MaxProcesses {
		before.Processes = append(before.Processes, wire.ProcessTime{PID: i + 1, Name: "p", Seconds: 2})
	}
	after := wire.Counters{Uptime: 110, Counts: wire.Counts{Processes: []wire.ProcessTime{{PID: 99, Name: "hog", Started: 50, Seconds: 5}}}}
	if got := after.Since(before).Processes; len(got) != 1 || got[0].Seconds != 3 {
		t.Errorf("%+v", got)
	}
}

// What a node says is only its word.
func TestWhatNoNodeCanSay(t *testing.T) {
	t.Parallel()
	wild := wire.Counters{Uptime: math.Inf(1), Counts: wire.Counts{Cores: -4, User: math.NaN(), Steal: -1, Throttles: math.MinInt64, Load: 1e300}}
	for range 1000 {
		wild.Processes = append(wild.Processes, wire.ProcessTime{Name: "\x1b[2J" + strings.Repeat("ö", 500), Seconds: 1})
		wild.Links = append(wild.Links, wire.LinkCounts{Name: "x\n", Sent: -1, Rate: -1})
	}
	m := wild.Since(wire.Counters{})
	if m.Seconds != 0 || m.Cores != 0 || m.User != 0 || m.Steal != 0 || m.Throttles != 0 || m.Load != 0 || len(m.Processes) > wire.MaxProcesses || len(m.Links) > wire.MaxLinks {
		t.Errorf("%+v", m)
	}
	if n := m.Processes[0].Name; len(n) > 64 || strings.ContainsAny(n, "\x1b\n") || m.Links[0].Sent != 0 || m.Links[0].Name != "x?" {
		t.Errorf("%+v", m)
	}
	if _, err := json.Marshal(m); err != nil {
		t.Error(err)
	}
}
