package spec

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

func TestQuantity(t *testing.T) {
	t.Parallel()
	sets := map[string]measure{"count": counted(), "bytes": bytesMeasure(), "speed": speedMeasure()}
	for _, c := range []struct {
		measure, text string
		op            muster.Op
		value         int64
		fault         muster.Reason
	}{
		{"count", "16", muster.AtLeast, 16, ""},
		{"count", ">=16", muster.AtLeast, 16, ""},
		{"count", " <= 16 ", muster.AtMost, 16, ""},
		{"count", "=1", muster.Exactly, 1, ""},
		{"count", "> 3", muster.More, 3, ""},
		{"count", "<3", muster.Less, 3, ""},
		{"count", "0", muster.AtLeast, 0, ""},
		{"bytes", "64GiB", muster.AtLeast, 64 << 30, ""},
		{"bytes", "64GB", muster.AtLeast, 64e9, ""},
		{"bytes", "1.5 TiB", muster.AtLeast, 3 << 39, ""},
		{"bytes", "0.1KiB", muster.AtLeast, 102, ""},
		{"bytes", "0", muster.AtLeast, 0, ""},
		{"bytes", "7 B", muster.AtLeast, 7, ""},
		{"speed", ">=10Gb/s", muster.AtLeast, 10e9, ""},
		{"speed", "2.5Gb/s", muster.AtLeast, 25e8, ""},
		{"count", "", "", 0, muster.ReasonRequired},
		{"count", "1.5", "", 0, muster.ReasonBadValue},
		{"count", "16 cores", "", 0, muster.ReasonBadValue},
		{"count", "-1", "", 0, muster.ReasonOutOfRange},
		{"count", ">=-1", "", 0, muster.ReasonOutOfRange},
		{"count", "<0", "", 0, muster.ReasonOutOfRange},
		{"count", "=>3", "", 0, muster.ReasonBadValue},
		{"count", "many", "", 0, muster.ReasonBadValue},
		{"count", "1..2", "", 0, muster.ReasonBadValue},
		{"count", "99999999999999999999", "", 0, muster.ReasonOutOfRange},
		{"bytes", "64", "", 0, muster.ReasonBadValue},
		{"bytes", "64 parsecs", "", 0, muster.ReasonBadValue},
		{"bytes", "9999999PiB", "", 0, muster.ReasonOutOfRange},
		{"speed", "10GB/s", "", 0, muster.ReasonBadValue},
		{"bytes", strings.Repeat("1", 1000), "", 0, muster.ReasonBadValue},
	} {
		q, f := sets[c.measure].quantity(c.text)
		switch {
		case c.fault == "" && (f != nil || q.Op != c.op || q.Value != c.value):
			t.Errorf("%s %q is %v (%v)", c.measure, c.text, q, f)
		case c.fault != "" && (f == nil || f.why != c.fault):
			t.Errorf("%s %q: %+v, want %q", c.measure, c.text, f, c.fault)
		}
	}
	// What was nearly right is put right.
	for _, c := range []struct{ measure, text, meant string }{
		{"count", "16 cores", "16"},
		{"count", "=>3", ">=16"},
		{"count", "many", ">=16"},
		{"bytes", "64", "64GiB"},
		{"bytes", "64G", "64GiB"},
		{"bytes", "64gb", "64GB"},
		{"bytes", "64Gi", "64GiB"},
		{"speed", "10Gbps", "10Gb/s"},
		{"speed", "10Gbit/s", "10Gb/s"},
		{"speed", "10G", "10Gb/s"},
		{"speed", "10GbE", "10Gb/s"},
	} {
		if _, f := sets[c.measure].quantity(c.text); f == nil || !strings.Contains(f.hint, c.meant) {
			t.Errorf("%s %q: %+v, want %q", c.measure, c.text, f, c.meant)
		}
	}
}

func TestDuration(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"8h": 8 * time.Hour, "2d": 48 * time.Hour, "1h30m": 90 * time.Minute, "90m": 90 * time.Minute, "1w": 168 * time.Hour, "1.5h": 90 * time.Minute, "0.5d": 12 * time.Hour, "1d12h30m15s": 36*time.Hour + 30*time.Minute + 15*time.Second,
	} {
		if got, err := ParseDuration(text); err != nil || got != want {
			t.Errorf("%s is %s (%v)", text, got, err)
		}
	}
	for text, want := range map[string]muster.Reason{
		"": muster.ReasonRequired, "8": muster.ReasonBadValue, "8 hours": muster.ReasonBadValue, "30m1h": muster.ReasonBadValue, "1h1h": muster.ReasonBadValue,
		"1.5s": muster.ReasonBadValue, "250ms": muster.ReasonBadValue, "+1h": muster.ReasonBadValue, "1.5.0h": muster.ReasonBadValue, "-1h": muster.ReasonBadValue, "08:00:00": muster.ReasonBadValue, "1-00:00:00": muster.ReasonBadValue, "h": muster.ReasonBadValue,
		"9999999999d": muster.ReasonOutOfRange, "999999w": muster.ReasonOutOfRange,
	} {
		_, err := ParseDuration(text)
		var e *muster.Error
		if !errors.As(err, &e) || e.Reason != want {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	for _, text := range []string{"8", "8 hours"} {
		_, err := ParseDuration(text)
		var e *muster.Error
		if !errors.As(err, &e) || !strings.Contains(e.Hint, "8h") {
			t.Errorf("%q: %+v", text, e)
		}
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	judges := map[string]func(string) *fault{"name": checkName, "user": checkUser, "package": checkPackage, "image": checkImage, "pattern": checkPattern, "project": checkProject}
	id := "sha256:" + strings.Repeat("0f", 32)
	for _, c := range []struct {
		kind      string
		good, bad []string
	}{
		{"name", []string{"cfd", "a", "7", "a-b", strings.Repeat("a", 32)}, []string{"", "A", "-a", "a-", "a b", "a_b", "a.b", strings.Repeat("a", 33), "c-23456789bc", "ä"}},
		{"user", []string{"alice", "a-b", "user_1", "a.b"}, []string{"", "muster", "video", "root", "systemd-network", "slurm", "_apt", "Alice", "1a", "a.", "a..b", "a b", "a$", strings.Repeat("a", 33), "a\n"}},
		{"package", []string{"gcc", "g++", "libfftw3-dev", "0ad", "libstdc++-14-dev", "gcc=4:14.2.0-1", "hello=2.10-3+deb13u1"}, []string{"", "a", "Gcc", "gcc=", "gcc=new", "gcc=1 2", "gcc-=1", "gcc:i386", "gcc/sid", "gcc-", "-gcc", "--yes", "a b", "../x", "gcc*"}},
		{"image", []string{"hpc", "hpc-12", "debian-13.1", id}, []string{"", "HPC", "sha256:abc", "../x", "a/b", "-x", id + "0", strings.Repeat("a", 65)}},
		{"pattern", []string{"", "EPYC*", "Intel(R) Xeon(R) CPU @ 2.10GHz", "r?"}, []string{" a", "a ", "r[12]", "a{b}", "a\x00b", strings.Repeat("a", 129)}},
		{"project", []string{"", "default", "Aero_2.1"}, []string{"a b", ".a", "a/b", strings.Repeat("a", 65)}},
	} {
		for _, s := range c.good {
			if f := judges[c.kind](s); f != nil {
				t.Errorf("%s %q: %v", c.kind, s, f)
			}
		}
		for _, s := range c.bad {
			if f := judges[c.kind](s); f == nil {
				t.Errorf("%s %q is accepted", c.kind, s)
			}
		}
	}
}

func TestCrossChecks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*wire.Request)
		fields string
	}{
		"fine":                {func(*wire.Request) {}, ""},
		"min above nodes":     {func(r *wire.Request) { r.Min = 5 }, "min"},
		"negative min":        {func(r *wire.Request) { r.Min = -1 }, "min"},
		"no nodes":            {func(r *wire.Request) { r.Nodes = 0; r.Min = 3 }, "nodes"},
		"too many nodes":      {func(r *wire.Request) { r.Nodes = 4001 }, "nodes"},
		"within and spread":   {func(r *wire.Request) { r.Within, r.Placement = "rack", "spread" }, "within"},
		"within alone":        {func(r *wire.Request) { r.Within = "rack" }, ""},
		"within unknown":      {func(r *wire.Request) { r.Within = "row" }, "within"},
		"speed without nics":  {func(r *wire.Request) { r.Machine.NICs, r.Machine.NICSpeed = "=0", "1Gb/s" }, "machine.nic_speed"},
		"kind of nics":        {func(r *wire.Request) { r.Machine.NICKind = "INF*" }, ""},
		"unknown nics":        {func(r *wire.Request) { r.Machine.NICKind = "infinibnd" }, "machine.nic_kind"},
		"model without gpus":  {func(r *wire.Request) { r.Machine.Accelerators, r.Machine.Accelerator = "=0", "H100" }, "machine.accelerator"},
		"zero gpus at least":  {func(r *wire.Request) { r.Machine.Accelerators, r.Machine.Accelerator = "0", "H100" }, ""},
		"short walltime":      {func(r *wire.Request) { r.Walltime = "30s" }, "walltime"},
		"long walltime":       {func(r *wire.Request) { r.Walltime = "60w" }, "walltime"},
		"users twice":         {func(r *wire.Request) { r.Users = []string{"a", "b", "a"} }, "users[2]"},
		"too many users":      {func(r *wire.Request) { r.Users = make([]string, maxUsers+1) }, "users"},
		"home and quota":      {func(r *wire.Request) { r.Home, r.HomeQuota = "h", "1GiB" }, "home_quota"},
		"bad home":            {func(r *wire.Request) { r.Home = "../etc" }, "home"},
		"bad quota":           {func(r *wire.Request) { r.HomeQuota = "12" }, "home_quota"},
		"no time to keep":     {func(r *wire.Request) { r.Retain = "0" }, ""},
		"too long to keep":    {func(r *wire.Request) { r.Retain = "400d" }, "retain"},
		"a volume twice":      {func(r *wire.Request) { r.Volumes = []string{"a:/x", "a:/y"} }, "volumes[1]"},
		"volumes in volumes":  {func(r *wire.Request) { r.Volumes = []string{"a:/x", "b:/x/y", "c:/xy"} }, "volumes[1]"},
		"volume in the home":  {func(r *wire.Request) { r.Volumes = []string{"a:/home/alice"} }, "volumes[0]"},
		"too many volumes":    {func(r *wire.Request) { r.Volumes = make([]string, maxVolumes+1) }, "volumes"},
		"a rate of nothing":   {func(r *wire.Request) { r.LinkRate = "0b/s" }, "link_rate"},
		"a rate of too much":  {func(r *wire.Request) { r.LinkRate = "10Tb/s" }, "link_rate"},
		"a rate compared":     {func(r *wire.Request) { r.LinkRate = ">=1Gb/s" }, "link_rate"},
		"a rate without nics": {func(r *wire.Request) { r.LinkRate, r.Machine.NICs = "1Gb/s", "=0" }, "link_rate"},
		"a rate of functions": {func(r *wire.Request) {
			r.LinkRate, r.Provider, r.VM.NIC = "1Gb/s", muster.ProviderVM, muster.VMNICFunction
		}, "link_rate"},
		"saved functions": {func(r *wire.Request) {
			r.OnPause, r.Provider, r.VM.NIC = "save", muster.ProviderVM, muster.VMNICFunction
		}, "on_pause"},
		"functions":          {func(r *wire.Request) { r.Provider, r.VM.NIC, r.Egress = muster.ProviderVM, muster.VMNICFunction, "nat" }, ""},
		"a rate":             {func(r *wire.Request) { r.LinkRate = "1Gb/s" }, ""},
		"shape":              {func(r *wire.Request) { r.Shape = wire.ShapeWish{Cores: 4, Sockets: 2, MemoryPerCore: "1GiB"} }, ""},
		"unequal sockets":    {func(r *wire.Request) { r.Shape = wire.ShapeWish{Cores: 3, Sockets: 2} }, "shape.cores"},
		"sockets of nothing": {func(r *wire.Request) { r.Shape = wire.ShapeWish{Sockets: 2} }, "shape.sockets"},
		"memory of nothing":  {func(r *wire.Request) { r.Shape = wire.ShapeWish{MemoryPerCore: "1GiB"} }, "shape.memory_per_core"},
		"little memory":      {func(r *wire.Request) { r.Shape = wire.ShapeWish{Cores: 1, MemoryPerCore: "64MiB"} }, "shape.memory_per_core"},
		"shape above machine": {func(r *wire.Request) {
			r.Machine.Cores, r.Machine.Memory, r.Shape = "<4", "<=7GiB", wire.ShapeWish{Cores: 4, MemoryPerCore: "2GiB"}
		}, "shape.memory_per_core shape.cores"},
		"arguments of Muster": {func(r *wire.Request) {
			r.Shape.KernelArgs = []string{"muster.server=x", "root=x", "init=x", "nosmt", "systemd.unit=rescue.target", "rd.break"}
		}, "shape.kernel_args[0] shape.kernel_args[1] shape.kernel_args[2] shape.kernel_args[4] shape.kernel_args[5]"},
		"everything is wrong": {func(r *wire.Request) { *r = wire.Request{Head: "x", Egress: "x", Validate: "x"} }, "name nodes head validate egress"},
	} {
		r := wire.Request{Name: "a", Nodes: 4}
		c.change(&r)
		_, problems := Validate(r, Defaults{})
		var fields []string
		for _, p := range problems {
			fields = append(fields, p.Field)
		}
		if got := strings.Join(fields, " "); got != c.fields {
			t.Errorf("%s: %q, want %q", name, got, c.fields)
		}
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	s, problems := Validate(wire.Request{Name: "a", Nodes: 4}, Defaults{Users: []string{"alice"}, Project: "p"})
	want := muster.Spec{
		Name: "a", Project: "p", Nodes: 4, Min: 4, Image: "hpc", Head: muster.HeadSeparate, Placement: muster.PlacePack,
		Validate: muster.ValidateQuick, Egress: muster.EgressNone, Users: []string{"alice"}, Queue: true,
	}
	if len(problems) > 0 || s.Name != want.Name || s.Min != 4 || s.Image != "hpc" || s.Head != want.Head || s.Placement != want.Placement ||
		s.Validate != want.Validate || s.Egress != want.Egress || !slices.Equal(s.Users, want.Users) || !s.Queue || s.Scheduler != "" {
		t.Errorf("%+v %v", s, problems)
	}
	if got, _ := ForImage(s, &muster.Image{Slurm: "24.11.5"}); got.Scheduler != muster.SchedulerSlurm {
		t.Error(got.Scheduler)
	}
	if got, _ := ForImage(s, &muster.Image{}); got.Scheduler != muster.SchedulerNone {
		t.Error(got.Scheduler)
	}
	s.Scheduler = muster.SchedulerSlurm
	if _, problems := ForImage(s, &muster.Image{Name: "raw"}); len(problems) != 1 {
		t.Error(problems)
	}
}

func TestFormatOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		contentType, file, data string
		want                    Format
	}{
		{"application/json; charset=utf-8", "x.xml", "", JSON},
		{"text/xml", "", "", XML},
		{"application/x-yaml", "", "{", YAML},
		{"application/octet-stream", "x.YML", "<", YAML},
		{"", "-", " \n{", JSON},
		{"", "", "\xef\xbb\xbf<cluster>", XML},
		{"", "", "name: x", YAML},
		{"", "", "", YAML},
	} {
		if got := FormatOf(c.contentType, c.file, []byte(c.data)); got != c.want {
			t.Errorf("%+v is %s", c, got)
		}
	}
}

// Whoever mistypes a kind of NIC is asked what they meant.
func TestMistypedNICKind(t *testing.T) {
	t.Parallel()
	for kind, hint := range map[string]string{"infinibnd": "did you mean infiniband?", "ethrnet": "did you mean ethernet?", "x": "write ethernet or infiniband or veth"} {
		_, problems := Validate(wire.Request{Name: "a", Nodes: 1, Machine: wire.MachineConstraints{NICKind: kind}}, Defaults{})
		if !slices.ContainsFunc(problems, func(p muster.Problem) bool {
			return p.Field == "machine.nic_kind" && p.Reason == muster.ReasonBadValue && p.Hint == hint
		}) {
			t.Errorf("%s: %+v", kind, problems)
		}
	}
}
