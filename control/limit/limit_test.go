package limit

import (
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"pgregory.net/rapid"
)

var whose = Whose{Name: "project p", Lifter: "an administrator"}

// TestNeverOver admits, releases and extends clusters and promises in any order: at no
// instant is more in use than the limit.
func TestNeverOver(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		most := rapid.IntRange(1, 8).Draw(t, "limit")
		limits := muster.Limits{Machines: most, Cores: 4 * most}
		var living []*muster.Cluster
		held := map[*muster.Cluster][]Hardware{}
		usage := func() (u Usage) {
			for _, c := range living {
				var has, promised []Hardware
				if c.Phase == muster.ClusterReserved {
					promised = held[c]
				} else {
					has = held[c]
				}
				u.Add(c, has, promised, now.Add(-30*24*time.Hour), now)
			}
			return u
		}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			n := rapid.IntRange(1, 5).Draw(t, "machines")
			length := time.Duration(rapid.IntRange(1, 20).Draw(t, "hours")) * time.Hour
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0, 1:
				list := make([]Hardware, n)
				for i := range list {
					list[i].Cores = rapid.IntRange(1, 8).Draw(t, "cores")
				}
				c := &muster.Cluster{Phase: muster.ClusterReady, Ready: now, Expires: now.Add(length), Spec: muster.Spec{Nodes: n, Head: muster.HeadShared, Walltime: muster.Duration(length)}}
				if ahead := rapid.IntRange(0, 30).Draw(t, "ahead"); ahead > 0 {
					start := now.Add(time.Duration(ahead) * time.Hour)
					c = &muster.Cluster{Phase: muster.ClusterReserved, Spec: c.Spec, Promise: &muster.Promise{Start: start, End: start.Add(length), Lead: muster.Duration(10 * time.Minute), Plan: muster.Plan{Assign: make([]muster.Assignment, n)}}}
				}
				u := usage()
				if len(Check(whose, limits, u, AskOf(c.Spec, now).With(list).Promised(c.Promise), now)) == 0 {
					living = append(living, c)
					held[c] = list
				}
			case 2:
				if len(living) > 0 {
					i := rapid.IntRange(0, len(living)-1).Draw(t, "release")
					living = append(living[:i:i], living[i+1:]...)
				}
			case 3:
				if len(living) > 0 {
					c := living[rapid.IntRange(0, len(living)-1).Draw(t, "extend")]
					ask := Ask{More: true, Walltime: time.Duration(c.Spec.Walltime) + length, From: c.Expires, Until: c.Expires.Add(length)}.With(held[c])
					if c.Phase == muster.ClusterReady && len(Check(whose, limits, usage(), ask, now)) == 0 {
						c.Expires = c.Expires.Add(length)
					}
				}
			case 4:
				now = now.Add(length)
				var left []*muster.Cluster
				for _, c := range living {
					if p := c.Promise; p != nil && !now.Before(p.Start) {
						c.Phase, c.Promise, c.Ready, c.Expires = muster.ClusterReady, nil, p.Start, p.End
					}
					if c.Promise != nil || c.Expires.After(now) {
						left = append(left, c)
					}
				}
				living = left
			}
			for at := now; at.Before(now.Add(60 * time.Hour)); at = at.Add(10 * time.Minute) {
				machines, cores := 0, 0
				for _, c := range living {
					from, until := c.Ready, c.Expires
					if p := c.Promise; p != nil {
						from, until = p.Start.Add(-time.Duration(p.Lead)), p.End
					}
					if !at.Before(from) && at.Before(until) {
						machines += len(held[c])
						for _, h := range held[c] {
							cores += h.Cores
						}
					}
				}
				if machines > limits.Machines || cores > limits.Cores {
					t.Fatalf("%d machines and %d cores at %s, limits %+v", machines, cores, at, limits)
				}
			}
		}
	})
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC) // a Thursday
	hour := muster.Duration(time.Hour)
	var four Usage
	four.Add(&muster.Cluster{Phase: muster.ClusterReady, Ready: now, Expires: now.Add(time.Hour), Spec: muster.Spec{Nodes: 4, Head: muster.HeadShared, Walltime: hour}}, make([]Hardware, 4), nil, now.Add(-time.Hour), now)
	var building Usage
	building.Add(&muster.Cluster{Phase: muster.ClusterBuilding, Spec: muster.Spec{Nodes: 4, Head: muster.HeadShared, Walltime: 10 * hour}}, make([]Hardware, 4), nil, now.Add(-time.Hour), now)
	var scavenger Usage
	scavenger.Add(&muster.Cluster{Phase: muster.ClusterReady, Ready: now, Spec: muster.Spec{Nodes: 4, Priority: muster.PriorityScavenger}}, make([]Hardware, 4), nil, now, now)
	for name, x := range map[string]struct {
		limits muster.Limits
		use    Usage
		ask    Ask
		field  string
	}{
		"held now":                {muster.Limits{Machines: 6}, four, Ask{Machines: 3, From: now, Until: now.Add(time.Hour), Walltime: time.Hour}, "machines"},
		"given back by then":      {muster.Limits{Machines: 6}, four, Ask{Machines: 6, From: now.Add(time.Hour), Until: now.Add(2 * time.Hour), Walltime: time.Hour}, ""},
		"a billion machines":      {muster.Limits{Machines: 6, MachineTime: hour, Period: hour}, four, Ask{Machines: 1_000_000_000, From: now, Walltime: 1 << 62, Until: now.Add(1 << 62)}, "machines machine_time"},
		"without an end":          {muster.Limits{Walltime: hour}, Usage{}, Ask{Machines: 1, From: now}, "walltime"},
		"too far ahead":           {muster.Limits{Ahead: hour}, Usage{}, Ask{Machines: 1}.Promised(&muster.Promise{Start: now.Add(2 * time.Hour), End: now.Add(3 * time.Hour)}), "start"},
		"booked while it builds":  {muster.Limits{MachineTime: 50 * hour, Period: 720 * hour}, building, Ask{Machines: 2, From: now, Walltime: 10 * time.Hour}, "machine_time"},
		"an extension is booked":  {muster.Limits{MachineTime: 6 * hour, Period: 720 * hour}, four, Ask{More: true, Machines: 4, Walltime: 2 * time.Hour, From: now.Add(time.Hour), Until: now.Add(2 * time.Hour)}, "machine_time"},
		"only the rest is booked": {muster.Limits{MachineTime: 6 * hour, Period: 720 * hour}, four, Ask{More: true, Machines: 2, Walltime: 100 * time.Hour, From: now, Until: now.Add(time.Hour)}, ""},
		"scavengers do not count": {muster.Limits{Machines: 4}, scavenger, Ask{Machines: 4, From: now}, ""},
	} {
		fields, sep := "", ""
		for _, p := range Check(whose, x.limits, x.use, x.ask, now) {
			if p.Reason != muster.ReasonOverLimit || p.Hint == "" {
				t.Errorf("%s: %+v", name, p)
			}
			fields, sep = fields+sep+p.Field, " "
		}
		if fields != x.field {
			t.Errorf("%s: refused for %q, want %q", name, fields, x.field)
		}
	}
}

func TestHours(t *testing.T) {
	t.Parallel()
	weekend := muster.HourLimit{From: "fri 18:00", Until: "mon 08:00", Zone: "Europe/Berlin", Machines: 2}
	friday := time.Date(2026, 11, 27, 17, 0, 0, 0, time.UTC) // 18:00 in Berlin
	for name, x := range map[string]struct {
		from, until time.Time
		meets       bool
	}{
		"before":        {friday.Add(-2 * time.Hour), friday, false},
		"into it":       {friday.Add(-2 * time.Hour), friday.Add(time.Minute), true},
		"within":        {friday.Add(time.Hour), friday.Add(2 * time.Hour), true},
		"at its end":    {friday.Add(62 * time.Hour), friday.Add(63 * time.Hour), false},
		"without end":   {friday.Add(70 * time.Hour), time.Time{}, true},
		"summer's time": {time.Date(2026, 3, 29, 20, 0, 0, 0, time.UTC), time.Date(2026, 3, 29, 21, 0, 0, 0, time.UTC), true},
	} {
		if _, is := Meets(weekend, x.from, x.until); is != x.meets {
			t.Errorf("%s: %t", name, is)
		}
	}
	ask := Ask{Machines: 3, From: friday, Until: friday.Add(time.Hour)}
	if got := CheckHours(whose, []muster.HourLimit{weekend}, Usage{}, ask); len(got) != 1 || got[0].Reason != muster.ReasonOverLimit {
		t.Errorf("%+v", got)
	}
}

func FuzzHour(f *testing.F) {
	f.Add("fri 18:00", "Europe/Berlin", int64(0))
	f.Add("mon 00:00", "UTC", int64(1<<40))
	f.Fuzz(func(t *testing.T, text, zone string, at int64) {
		if n, err := ParseHour(text); err == nil && (n < 0 || n >= week) {
			t.Fatalf("%q is minute %d", text, n)
		}
		Meets(muster.HourLimit{From: text, Until: "mon 08:00", Zone: zone}, time.Unix(at%(1<<40), 0), time.Time{})
	})
}

// What a cluster used before its pauses counts, and its pauses do not.
func TestUsedBeforePauses(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	c := muster.Cluster{Phase: muster.ClusterReady, Created: now.Add(-100 * time.Hour), Ready: now.Add(-time.Hour), UsedBefore: muster.Duration(5 * time.Hour), Spec: muster.Spec{Nodes: 2, Head: muster.HeadShared}}
	held := []Hardware{{}, {}}
	for _, x := range []struct {
		from time.Time // of the period
		want time.Duration
	}{
		{now.Add(-200 * time.Hour), 12 * time.Hour},
		{now.Add(-3 * time.Hour), 6 * time.Hour}, // two hours of before it may lie in there
		{now.Add(-30 * time.Minute), time.Hour},
	} {
		var u Usage
		u.Add(&c, held, nil, x.from, now)
		if u.Booked != x.want {
			t.Errorf("since %s: %s, want %s", x.from, u.Booked, x.want)
		}
	}
}
