package wipe

import (
	"regexp"
	"testing"

	"pgregory.net/rapid"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

func TestMatch(t *testing.T) {
	t.Parallel()
	have := []muster.Disk{
		{Name: "sda", Model: "X", Serial: "1", Size: 100}, {Name: "sdb", Model: "X", Serial: "2", Size: 100},
		{Name: "sdc", Model: "Y", Size: 50}, {Name: "sdd", Model: "Y", Size: 50},
	}
	for name, c := range map[string]struct {
		order []wire.CleanDisk
		want  string // names, or what of why not
	}{
		"serial":            {[]wire.CleanDisk{{Serial: "2", Size: 100}}, "sdb"},
		"both":              {[]wire.CleanDisk{{Serial: "2", Model: "X", Size: 100}, {Serial: "1", Size: 100}}, "sdb sda"},
		"another size":      {[]wire.CleanDisk{{Serial: "2", Size: 101}}, "sdb .*100.*101"},
		"another model":     {[]wire.CleanDisk{{Serial: "2", Model: "Z", Size: 100}}, `sdb .*"X".*"Z"`},
		"not there":         {[]wire.CleanDisk{{Serial: "3", Size: 100}}, "^[^ ]+ [^ ]+ "},
		"one of two alike":  {[]wire.CleanDisk{{Model: "Y", Size: 50}}, "2 .*sdc, sdd"},
		"both alike":        {[]wire.CleanDisk{{Model: "Y", Size: 50}, {Model: "Y", Size: 50}}, "sdc sdd"},
		"three of two":      {[]wire.CleanDisk{{Model: "Y", Size: 50}, {Model: "Y", Size: 50}, {Model: "Y", Size: 50}}, "^sdc sdd [^ ]+ "},
		"the rest":          {[]wire.CleanDisk{{Model: "X", Size: 100}, {Serial: "1", Model: "X", Size: 100}}, "sdb sda"},
		"named twice":       {[]wire.CleanDisk{{Serial: "1", Size: 100}, {Serial: "1", Size: 100}}, "^sda [^ ]+ "},
		"nothing but size":  {[]wire.CleanDisk{{Size: 100}}, "^[^ ]+ [^ ]+ "},
		"the size of a few": {[]wire.CleanDisk{{Model: "X", Size: 50}}, "^[^ ]+ [^ ]+ "},
	} {
		got := ""
		for _, n := range Match(c.order, have) {
			if n.Disk != nil {
				got += n.Disk.Name + " "
			} else {
				got += n.Why + " "
			}
		}
		if !regexp.MustCompile(c.want).MatchString(got) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// Whatever is ordered: a disk is taken once at most, only where all that is said of
// it is so, and only as many as are named of those that look alike.
func TestMatchProperty(t *testing.T) {
	t.Parallel()
	disk := rapid.Custom(func(t *rapid.T) muster.Disk {
		return muster.Disk{
			Name: rapid.StringMatching("sd[a-z]{2}").Draw(t, "name"), Model: rapid.SampledFrom([]string{"", "X", "Y"}).Draw(t, "model"),
			Serial: rapid.SampledFrom([]string{"", "1", "2", "3"}).Draw(t, "serial"), Size: rapid.SampledFrom([]int64{50, 100}).Draw(t, "size"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		have := rapid.SliceOfN(disk, 0, 6).Draw(t, "have")
		var order []wire.CleanDisk
		for _, d := range rapid.SliceOfN(disk, 0, 6).Draw(t, "order") {
			order = append(order, wire.CleanDisk{Serial: d.Serial, Model: d.Model, Size: d.Size})
		}
		taken := map[*muster.Disk]bool{}
		for i, n := range Match(order, have) {
			if n.Order != order[i] || (n.Disk == nil) == (n.Why == "") || n.Absent && n.Disk != nil {
				t.Fatalf("%+v", n)
			}
			if n.Disk == nil {
				continue
			}
			if taken[n.Disk] {
				t.Fatalf("%s is taken twice", n.Disk.Name)
			}
			taken[n.Disk] = true
			if !is(n.Order, *n.Disk) {
				t.Fatalf("%+v is not %+v", *n.Disk, n.Order)
			}
			// Whoever looks the same to the order was taken by it, too, or by a more
			// precise one: nobody chose between them.
			for k := range have {
				if is(n.Order, have[k]) && !matchedBy(order, have, &have[k]) {
					t.Fatalf("%s was taken, %s looks the same and was not", n.Disk.Name, have[k].Name)
				}
			}
		}
	})
}

func matchedBy(order []wire.CleanDisk, have []muster.Disk, d *muster.Disk) bool {
	for _, n := range Match(order, have) {
		if n.Disk == d {
			return true
		}
	}
	return false
}
