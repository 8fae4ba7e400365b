package lastcontact_test

import (
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/lastcontact"
)

// That somebody answers for a machine is no sign that it speaks, and the other way round.
func TestContacts(t *testing.T) {
	t.Parallel()
	first := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(id muster.MachineID, d time.Duration) lastcontact.Source {
		return func(m muster.MachineID) time.Time {
			if m != id {
				return time.Time{}
			}
			return first.Add(d)
		}
	}
	var c lastcontact.Contacts
	c.AddHeard(at("m1", 2*time.Second))
	c.AddHeard(at("m1", time.Second))
	c.AddAnswered(at("m1", 3*time.Second))
	c.AddAnswered(at("m2", time.Minute))
	for id, want := range map[muster.MachineID][2]time.Time{
		"m1": {first.Add(2 * time.Second), first.Add(3 * time.Second)},
		"m2": {{}, first.Add(time.Minute)},
		"m3": {},
	} {
		if got, err := c.Heard(t.Context(), id); err != nil || !got.Equal(want[0]) {
			t.Errorf("%s was heard at %v, %v; want %v", id, got, err, want[0])
		}
		if got := c.Answered(id); !got.Equal(want[1]) {
			t.Errorf("%s answered at %v, want %v", id, got, want[1])
		}
	}
	var nobody *lastcontact.Contacts
	if got, err := nobody.Heard(t.Context(), "m1"); err != nil || !got.IsZero() || !nobody.Answered("m1").IsZero() {
		t.Error("nobody heard something")
	}
}
