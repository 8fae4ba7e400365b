package spec

import (
	"errors"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

func TestVolumeUses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]muster.VolumeUse{
		"inputs":              {Volume: "inputs", Target: "/data/inputs"},
		"inputs:ro":           {Volume: "inputs", Target: "/data/inputs", ReadOnly: true},
		"inputs:/data":        {Volume: "inputs", Target: "/data"},
		"inputs:/data:ro":     {Volume: "inputs", Target: "/data", ReadOnly: true},
		"inputs:/opt/a.b:rw":  {Volume: "inputs", Target: "/opt/a.b"},
		"v-2345678901:/x/y-z": {Volume: "v-2345678901", Target: "/x/y-z"},
	} {
		got, err := ParseVolumeUse(text)
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{
		"", ":", "a:", "a::", "a:b", "a:/", "a://", "a:/x/", "a:/x/../y", "a:/x/./y", "a:/..", "a:/.x", "a:/x:ro:ro", "a:/x:/y",
		"a:/home", "a:/home/alice", "a:/etc", "a:/etc/slurm", "a:/usr/local", "a:/var/lib/slurm", "a:/tmp", "a:/run/muster",
		"a:/proc", "a:/lib", "a:/lib64/x", "a:/opt", "a:/mnt", "A", "../a", "a/b", "a b", "a:/x y", "a:/x\x00", "a:/x\n", "a:/ä",
		"a:/" + strings.Repeat("x", 200), strings.Repeat("a", 70),
	} {
		if got, err := ParseVolumeUse(text); err == nil {
			t.Errorf("%q became %+v", text, got)
		} else if err.Hint == "" {
			t.Errorf("%q: no hint: %v", text, err)
		}
	}
}

// FuzzVolumeUse: what is accepted names one volume and a place that is clean,
// absolute and none of the system's.
func FuzzVolumeUse(f *testing.F) {
	for _, s := range []string{"a", "a:ro", "a:/data", "a:/data:ro", "a:/x/../etc", "a:/home/x", "a:/var", "a://etc", "a:/data/.."} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		u, err := ParseVolumeUse(s)
		if err != nil {
			return
		}
		if !path.IsAbs(u.Target) || path.Clean(u.Target) != u.Target || u.Target == "/" || strings.ContainsAny(u.Target, " \t\n\x00:\\,") {
			t.Fatalf("%q is mounted at %q", s, u.Target)
		}
		if strings.ContainsAny(u.Volume, "/.: \x00\n") || u.Volume == "" {
			t.Fatalf("%q names %q", s, u.Volume)
		}
		for _, at := range []string{"/home", "/etc", "/usr", "/var", "/proc", "/sys", "/dev", "/run", "/root", "/boot", "/tmp", "/bin", "/sbin", "/lib"} {
			if u.Target == at || strings.HasPrefix(u.Target, at+"/") {
				t.Fatalf("%q hides %s", s, at)
			}
		}
	})
}

func TestRetain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		site time.Duration
		want time.Duration
	}{
		{"", 0, muster.DefaultRetain}, {"", time.Hour, time.Hour}, {"", -1, 0}, {"0", 0, 0}, {"30d", -1, 30 * 24 * time.Hour},
	} {
		s, problems := Validate(wire.Request{Name: "a", Nodes: 1, Retain: c.text}, Defaults{Retain: c.site})
		if time.Duration(s.Retain) != c.want || len(problems) > 0 {
			t.Errorf("%+v: %s %v", c, s.Retain, problems)
		}
	}
}

// What is wrong with a size or a time of a volume is told with its field and
// with something that can be written instead.
func TestVolumeFaultsNameFieldAndCure(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		quota, retain string
		why           muster.Reason
		hint          string
	}{
		{"10", "", muster.ReasonBadValue, "10GiB"},
		{"10G", "", muster.ReasonBadValue, "10GiB"},
		{"10 apples", "", muster.ReasonBadValue, "10GiB"},
		{">=10GiB", "", muster.ReasonBadValue, "10GiB"},
		{"-1GiB", "", muster.ReasonOutOfRange, "10GiB"},
		{"lots", "", muster.ReasonBadValue, "10GiB"},
		{" ", "", muster.ReasonRequired, "10GiB"},
		{"9999999PiB", "", muster.ReasonOutOfRange, "10GiB"},
		{strings.Repeat("1", 100), "", muster.ReasonBadValue, "10GiB"},
		{"1KiB", "", muster.ReasonOutOfRange, "10GiB"},
		{"", "7", muster.ReasonBadValue, "7d"},
		{"", "-7d", muster.ReasonBadValue, "7d"},
		{"", "a week", muster.ReasonBadValue, "7d"},
		{"", "999d", muster.ReasonOutOfRange, "muster volume retain"},
	} {
		field := "home_quota"
		if c.retain != "" {
			field = "retain"
		}
		_, problems := Validate(wire.Request{Name: "a", Nodes: 1, HomeQuota: c.quota, Retain: c.retain}, Defaults{})
		if len(problems) != 1 || problems[0].Field != field || problems[0].Reason != c.why || !strings.Contains(problems[0].Hint, c.hint) {
			t.Errorf("%+v: %+v", c, problems)
		}
		if c.quota == "" || c.quota == "1KiB" {
			continue
		}
		_, err := ParseBytes(c.quota)
		var e *muster.Error
		if !errors.As(err, &e) || e.Reason != c.why || !strings.Contains(e.Hint, c.hint) {
			t.Errorf("%q: %v", c.quota, err)
		}
	}
}
