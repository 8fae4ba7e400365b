package spec

import (
	"bytes"
	"github.com/muster-hpc/muster"
	"os"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster/wire"
	"pgregory.net/rapid"
)

// anyRequest draws valid requests.
func anyRequest() *rapid.Generator[wire.Request] {
	maybe := func(t *rapid.T, name string, g *rapid.Generator[string]) string {
		if rapid.Bool().Draw(t, "has "+name) {
			return g.Draw(t, name)
		}
		return ""
	}
	word := rapid.StringMatching(`[a-z][a-z0-9]{0,8}`).Filter(func(s string) bool { return muster.CheckUserName(s) == nil })
	pattern := rapid.StringMatching(`[A-Za-z0-9*?()@.:#&<>'"!%|,~-]([A-Za-z0-9*?()@.:#&<>'"!%|,~ -]{0,12}[A-Za-z0-9*?])?`)
	amount := rapid.StringMatching(`((>=|<=|=|>) ?)?[1-9][0-9]{0,3}`)
	size := rapid.StringMatching(`(>=|<=|=|>|<)?[1-9][0-9]{0,3}(\.[0-9]{1,2})?(B|KiB|MiB|GiB|TiB|KB|MB|GB|TB)`)
	return rapid.Custom(func(t *rapid.T) wire.Request {
		r := wire.Request{
			Name:  rapid.StringMatching(`[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?`).Draw(t, "name"),
			Nodes: rapid.IntRange(1, MaxNodes).Draw(t, "nodes"),
			Machine: wire.MachineConstraints{
				Provider:     maybe(t, "provider", pattern),
				Architecture: maybe(t, "architecture", rapid.SampledFrom([]string{"amd64", "arm64"})),
				Processor:    maybe(t, "processor", pattern),
				Class:        maybe(t, "class", pattern),
				Rack:         maybe(t, "rack", pattern),
				Cores:        maybe(t, "cores", amount),
				Memory:       maybe(t, "memory", size),
				Disk:         maybe(t, "disk", size),
				NICs:         maybe(t, "nics", amount),
				NICSpeed:     maybe(t, "speed", rapid.StringMatching(`(>=)?[1-9][0-9]?[KMGT]b/s`)),
				NICKind:      maybe(t, "kind", rapid.SampledFrom([]string{"ethernet", "inf*", "VETH", "*"})),
			},
			Mixed:     rapid.Bool().Draw(t, "mixed"),
			Logins:    rapid.IntRange(0, maxLogins).Draw(t, "logins"),
			Image:     maybe(t, "image", word),
			Head:      maybe(t, "head", rapid.SampledFrom([]string{"separate", "shared"})),
			Scheduler: maybe(t, "scheduler", rapid.SampledFrom([]string{"slurm", "none"})),
			Placement: maybe(t, "placement", rapid.SampledFrom([]string{"pack", "any"})),
			Within:    maybe(t, "within", rapid.Just("rack")),
			Walltime:  maybe(t, "walltime", rapid.StringMatching(`[1-9]d([1-9]h)?([1-9]m)?`)),
			Validate:  maybe(t, "validate", rapid.SampledFrom([]string{"quick", "full", "off"})),
			Egress:    maybe(t, "egress", rapid.SampledFrom([]string{"none", "proxy", "nat"})),
			Project:   maybe(t, "project", word),
			Home:      maybe(t, "home", word),
			Retain:    maybe(t, "retain", rapid.StringMatching(`0|[1-9]d([1-9]h)?`)),
		}
		r.LinkRate = maybe(t, "rate", rapid.StringMatching(`[1-9][0-9]?[MG]b/s`))
		if r.Shape.NUMA = maybe(t, "numa", rapid.SampledFrom([]string{"shown", "hidden"})); rapid.Bool().Draw(t, "has args") {
			r.Shape.KernelArgs = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"nosmt", "numa_balancing=disable", "isolcpus=1-3,5", "idle=poll"}), 1, 3, rapid.ID).Draw(t, "args")
		}
		if r.Machine.Cores == "" && r.Machine.Memory == "" && rapid.Bool().Draw(t, "has shape") {
			r.Shape.Sockets = rapid.IntRange(0, 4).Draw(t, "sockets")
			r.Shape.Cores = rapid.IntRange(1, 64).Draw(t, "cores") * max(1, r.Shape.Sockets)
			r.Shape.MemoryPerCore = maybe(t, "per core", rapid.StringMatching(`[1-9][0-9]?GiB`))
		}
		if r.LinkRate != "" {
			r.Machine.NICs = "" // a rate wants links
		}
		if rapid.Bool().Draw(t, "has min") {
			r.Min = rapid.IntRange(1, r.Nodes).Draw(t, "min")
		}
		if l := rapid.SliceOfNDistinct(word, 0, 4, rapid.ID).Draw(t, "users"); len(l) > 0 {
			r.Users = l
		}
		if l := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z][a-z0-9.+-]{0,6}[a-z0-9+]`), 0, 4, rapid.ID).Draw(t, "packages"); len(l) > 0 {
			r.Packages = l
		}
		if r.Home == "" {
			r.HomeQuota = maybe(t, "home quota", rapid.StringMatching(`[1-9][0-9]{0,2}[GT]iB`))
		}
		for i, name := range rapid.SliceOfNDistinct(word, 0, 4, rapid.ID).Draw(t, "volumes") {
			r.Volumes = append(r.Volumes, name+[]string{"", ":ro", ":/v-" + name, ":/opt/" + name + ":rw"}[i])
		}
		if rapid.Bool().Draw(t, "has queue") {
			q := rapid.Bool().Draw(t, "queue")
			r.Queue = &q
		}
		return r
	})
}

// What is written is read back the same, in every format, and is valid.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := anyRequest().Draw(t, "request")
		for _, f := range Formats() {
			data, err := Encode(r, f)
			if err != nil {
				t.Fatal(err)
			}
			if got := FormatOf("", "", data); got != f {
				t.Fatalf("%s looks like %s:\n%s", f, got, data)
			}
			got, _, err := Decode(data, f)
			if err != nil {
				t.Fatalf("%v\n%s", err, data)
			}
			if !reflect.DeepEqual(got, r) {
				t.Fatalf("%s:\n%s\ngot  %+v\nwant %+v", f, data, got, r)
			}
			if _, problems := Validate(got, Defaults{}); len(problems) > 0 {
				t.Fatalf("%v", problems)
			}
		}
	})
}

// Any text at all survives JSON and YAML, valid or not.
func TestRoundTripAnyText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := wire.Request{
			Name: rapid.String().Draw(t, "name"), Nodes: int(rapid.Int32().Draw(t, "nodes")),
			Image: rapid.String().Draw(t, "image"), Users: []string{rapid.String().Draw(t, "user")},
			Machine: wire.MachineConstraints{Cores: rapid.String().Draw(t, "cores")},
		}
		for _, f := range []Format{JSON, YAML} {
			data, err := Encode(r, f)
			if err != nil {
				t.Fatal(err)
			}
			got, _, err := Decode(data, f)
			if err != nil || !reflect.DeepEqual(got, r) {
				t.Fatalf("%s: %v\n%s\ngot  %#v\nwant %#v", f, err, data, got, r)
			}
		}
	})
}

// A duration that is written is read back the same.
func TestDurations(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(0, int64(maxWalltime/time.Second)).Draw(t, "s")) * time.Second
		got, err := ParseDuration(FormatDuration(d))
		if err != nil || got != d {
			t.Fatalf("%s: %s, %v", FormatDuration(d), got, err)
		}
	})
}

func fuzzFormat(f *testing.F, format Format) {
	for _, name := range []string{"full", "small", "many.bad"} {
		f.Add(readFile(f, "testdata/"+name+"."+string(format)))
	}
	for _, s := range []string{"", "{", "<", "a: [", "&a [*a]", "<!DOCTYPE", "\xff", "<cluster/>", "null", "? a", "- - - -"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		req, s, err := Read(data, format, Defaults{})
		if err != nil {
			if len(err.Error()) > 100*maxProblems+200*maxProblems {
				t.Fatalf("an error of %d bytes", len(err.Error()))
			}
			return
		}
		if s.Nodes < 1 || s.Min < 1 || s.Min > s.Nodes || s.Name == "" {
			t.Fatalf("accepted %+v", s)
		}
		again, err := Encode(req, format)
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := Decode(again, format)
		if err != nil || !reflect.DeepEqual(normal(got), normal(req)) {
			t.Fatalf("%v: %s\ngot  %+v\nwant %+v", err, again, got, req)
		}
	})
}

// normal makes lists without entries equal.
func normal(r wire.Request) wire.Request {
	if len(r.Users) == 0 {
		r.Users = nil
	}
	if len(r.Packages) == 0 {
		r.Packages = nil
	}
	if len(r.Volumes) == 0 {
		r.Volumes = nil
	}
	return r
}

func FuzzYAML(f *testing.F) { fuzzFormat(f, YAML) }
func FuzzJSON(f *testing.F) { fuzzFormat(f, JSON) }
func FuzzXML(f *testing.F)  { fuzzFormat(f, XML) }

// Hostile requests cost little.
func TestHostile(t *testing.T) {
	bomb := "a0: &a0 [x,x,x,x,x,x,x,x,x]\n"
	for i := 1; i < 20; i++ {
		bomb += strings.ReplaceAll("aN: &aN [*aM,*aM,*aM,*aM,*aM,*aM,*aM]\n", "N", string(rune('a'+i)))
	}
	for name, c := range map[string]struct {
		format Format
		data   []byte
	}{
		"deep json":      {JSON, bytes.Repeat([]byte("["), 1<<20)},
		"deep objects":   {JSON, bytes.Repeat([]byte(`{"a":`), 1<<17)},
		"wide json":      {JSON, append(append([]byte(`{"users":[`), bytes.Repeat([]byte(`"a",`), 1<<17)...), `"b"]}`...)},
		"deep yaml":      {YAML, bytes.Repeat([]byte("["), 1<<20)},
		"dashes":         {YAML, bytes.Repeat([]byte("- "), 1<<19)},
		"maps":           {YAML, bytes.Repeat([]byte("? "), 1<<19)},
		"wide yaml":      {YAML, append([]byte("users: ["), bytes.Repeat([]byte("a,"), 1<<18)...)},
		"many lines":     {YAML, bytes.Repeat([]byte("a: b\n"), 1<<17)},
		"comments":       {YAML, bytes.Repeat([]byte("#\n"), 1<<19)},
		"blanks":         {YAML, append(bytes.Repeat([]byte(" "), 1<<19), '[')},
		"quotes":         {YAML, bytes.Repeat([]byte(`"`), 1<<20)},
		"colons":         {YAML, bytes.Repeat([]byte(":"), 1<<20)},
		"anchors":        {YAML, bytes.Repeat([]byte("- &a b\n"), 1<<17)},
		"tags":           {YAML, bytes.Repeat([]byte("!!a "), 1<<18)},
		"braces":         {YAML, bytes.Repeat([]byte("{a: "), 1<<18)},
		"folded":         {YAML, append([]byte("a: >\n"), bytes.Repeat([]byte("  b\n"), 1<<18)...)},
		"documents":      {YAML, bytes.Repeat([]byte("---\n"), 1<<18)},
		"pairs":          {YAML, append([]byte("{"), bytes.Repeat([]byte("a,"), 1<<18)...)},
		"one line":       {YAML, append([]byte("a: "), bytes.Repeat([]byte("b "), 1<<19)...)},
		"comment xml":    {XML, append([]byte("<cluster>"), bytes.Repeat([]byte("<!-- -->"), 1<<16)...)},
		"aliases":        {YAML, []byte(bomb)},
		"deep xml":       {XML, bytes.Repeat([]byte("<cluster>"), 1<<16)},
		"wide xml":       {XML, append([]byte("<cluster>"), bytes.Repeat([]byte("<a/>"), 1<<17)...)},
		"attributes":     {XML, append([]byte("<cluster "), bytes.Repeat([]byte(`a="b" `), 1<<16)...)},
		"long name":      {YAML, append([]byte("name: "), bytes.Repeat([]byte("a"), 1<<19)...)},
		"long field":     {YAML, append(bytes.Repeat([]byte("a"), 1<<19), ": b\n"...)},
		"too large":      {YAML, make([]byte, maxBytes+1)},
		"unknown format": {"toml", []byte("a = 1")},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			_, _, err := Read(c.data, c.format, Defaults{})
			if err == nil {
				t.Fatal("accepted")
			}
			if n := len(err.Error()); n > 20000 {
				t.Errorf("the error has %d bytes: %.300s", n, err)
			}
			if took := time.Since(start); took > time.Minute {
				t.Errorf("took %s", took)
			}
			runtime.ReadMemStats(&after)
			if n := after.TotalAlloc - before.TotalAlloc; n > 64<<20 {
				t.Errorf("allocated %d MiB", n>>20)
			} else {
				t.Logf("%s, %d MiB", time.Since(start), n>>20)
			}
		})
	}
}

func readFile(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
