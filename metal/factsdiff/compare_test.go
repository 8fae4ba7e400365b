package factsdiff

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/muster-hpc/muster"
)

func was() muster.Facts {
	return muster.Facts{
		Vendor: "M", Product: "P", Serial: "S", UUID: "u", Firmware: "1.0", Processor: "CPU", Sockets: 2, Cores: 64, Threads: 128, Memory: 128 << 30, TPM: true,
		NUMA:         []muster.NUMA{{ID: 0}, {ID: 1}},
		DIMMs:        []muster.DIMM{{Slot: "A1", Size: 16 << 30, Serial: "d1", Speed: 4800}, {Slot: "A2", Size: 16 << 30, Serial: "d2", Speed: 4800}},
		Disks:        []muster.Disk{{Name: "sda", Kind: "ssd", Model: "X", Serial: "k1", Size: 1 << 40}, {Name: "vda", Kind: "virtual", Size: 10 << 30}},
		NICs:         []muster.NIC{{Name: "eth0", MAC: "m1", Speed: 25e9, PCIAddress: "0000:01:00.0"}},
		Accelerators: []muster.Device{{Kind: "gpu", Model: "10de:2330", Count: 4}},
	}
}

func TestCompare(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*muster.Facts)
		want   []Difference // Text: what it names, with | between
	}{
		"nothing": {func(f *muster.Facts) {
			f.Memory -= 1 << 30 // the firmware's
			f.Disks[0].Name, f.NICs[0].Name, f.NICs[0].Link, f.Class, f.NICs[0].Neighbour = "sdz", "mgmt0", "down", "c", &muster.Neighbour{}
			f.DIMMs[0], f.DIMMs[1] = f.DIMMs[1], f.DIMMs[0]
		}, nil},
		"not read": {func(f *muster.Facts) {
			*f = muster.Facts{TPM: true, Disks: f.Disks, NICs: f.NICs, Accelerators: f.Accelerators}
		}, nil},
		"a DIMM": {func(f *muster.Facts) { f.DIMMs, f.Memory = f.DIMMs[:1], 112<<30 }, []Difference{{"memory", "16 GiB|A2", true}}},
		"a DIMM more": {func(f *muster.Facts) {
			f.DIMMs = append(f.DIMMs, muster.DIMM{Slot: "B1", Size: 32 << 30})
		}, []Difference{{"memory", "32 GiB|B1", false}}},
		"a smaller DIMM":   {func(f *muster.Facts) { f.DIMMs[0].Size = 8 << 30 }, []Difference{{"memory", "A1|16 GiB|8 GiB", true}}},
		"another DIMM":     {func(f *muster.Facts) { f.DIMMs[0].Serial = "d9" }, []Difference{{"memory", "A1|d1|d9", false}}},
		"a slower DIMM":    {func(f *muster.Facts) { f.DIMMs[0].Speed = 4000 }, []Difference{{"memory", "A1|4800|4000", true}}},
		"memory":           {func(f *muster.Facts) { f.DIMMs, f.Memory = nil, 64<<30 }, []Difference{{"memory", "128 GiB|64 GiB", true}}},
		"cores":            {func(f *muster.Facts) { f.Cores = 63 }, []Difference{{"processor", "1|63|64", true}}},
		"sockets":          {func(f *muster.Facts) { f.Sockets = 4 }, []Difference{{"processor", "2|4", false}}},
		"a disk":           {func(f *muster.Facts) { f.Disks = f.Disks[1:] }, []Difference{{"disk", "X|1 TiB|k1", true}}},
		"a disk more":      {func(f *muster.Facts) { f.Disks = append(f.Disks, f.Disks[1]) }, []Difference{{"disk", "virtual|10 GiB", false}}},
		"a smaller disk":   {func(f *muster.Facts) { f.Disks[0].Size = 1 << 39 }, []Difference{{"disk", "X|1 TiB|k1|512 GiB", true}}},
		"a protected disk": {func(f *muster.Facts) { f.Disks[0].ReadOnly = true }, []Difference{{"disk", "X|1 TiB|k1|write", true}}},
		"a NIC":            {func(f *muster.Facts) { f.NICs = nil }, []Difference{{"nic", "m1|0000:01:00.0", true}}},
		"a slower NIC":     {func(f *muster.Facts) { f.NICs[0].Speed = 1e9 }, []Difference{{"nic", "m1|25 Gb/s|1 Gb/s", true}}},
		"an accelerator":   {func(f *muster.Facts) { f.Accelerators[0].Count = 3 }, []Difference{{"accelerator", "gpu 10de:2330|4|3", true}}},
		"all of them":      {func(f *muster.Facts) { f.Accelerators = nil }, []Difference{{"accelerator", "gpu 10de:2330|4|0", true}}},
		"the TPM":          {func(f *muster.Facts) { f.TPM = false }, []Difference{{"tpm", "TPM", true}}},
		"the firmware":     {func(f *muster.Facts) { f.Firmware = "1.1" }, []Difference{{"firmware", `"1.0"|"1.1"`, false}}},
		"another machine":  {func(f *muster.Facts) { f.Serial = "T" }, []Difference{{"machine", `"S"|"T"`, false}}},
	} {
		is := was()
		c.change(&is)
		if got := Compare(was(), is); !slices.EqualFunc(got, c.want, names) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// names reports whether a difference is the one that is wanted, and names all of that.
func names(got, want Difference) bool {
	for part := range strings.SplitSeq(want.Text, "|") {
		if !strings.Contains(got.Text, part) {
			return false
		}
	}
	return got.What == want.What && got.Worse == want.Worse
}

// A machine does not differ from itself, and what one side lost the other won.
func TestCompareProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) muster.Facts {
			f := was()
			for range rapid.IntRange(0, 3).Draw(t, name+" DIMMs") {
				f.DIMMs = append(f.DIMMs, muster.DIMM{Slot: rapid.SampledFrom([]string{"", "A1", "C1"}).Draw(t, name+" slot"), Size: 1 << 30})
			}
			f.Disks = f.Disks[:rapid.IntRange(0, 2).Draw(t, name+" disks")]
			f.NICs = f.NICs[:rapid.IntRange(0, 1).Draw(t, name+" NICs")]
			f.Cores = rapid.IntRange(0, 3).Draw(t, name+" cores")
			return f
		}
		a, b := draw("a"), draw("b")
		if d := Compare(a, a); d != nil {
			t.Fatalf("%+v", d)
		}
		if x, y := Compare(a, b), Compare(b, a); len(x) != len(y) {
			t.Fatalf("%+v\n%+v", x, y)
		}
		before, _ := json.Marshal(a)
		Compare(a, b)
		if after, _ := json.Marshal(a); string(before) != string(after) {
			t.Fatal("Compare changed what it was given")
		}
	})
}
