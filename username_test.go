package muster

import (
	"strings"
	"testing"
)

func TestCheckUserName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"muster", "sudo", "docker", "video", "staff", "root", "postgres", "statd", "operator", "adm", "everyone", "tcpdump", "chrony",
		"tty", "disk", "kmem", "dialout", "fax", "voice", "cdrom", "floppy", "tape", "audio", "dip", "src", "shadow", "utmp", "sasl", "plugdev",
		"users", "input", "sgx", "clock", "kvm", "render", "rdma", "crontab", "systemd-network", "muster-probe", "wheel", "nogroup", "slurm", "munge",
		"", "Jane", ".jane", "jane.", "jane..doe", "a/b", "-a", "1234", "a\n", `EXAMPLE\john`, "jane@x", "_apt", "1x", "a b", "a:b", "aaaaaaaaaabbbbbbbbbbccccccccccdd",
	} {
		if e := CheckUserName(name); e == nil || e.Hint == "" {
			t.Errorf("%q is taken", name)
		}
	}
	for _, name := range []string{"alice", "bob", "jane_doe", "jane.doe", "j.d-2", "x", "a-1", "aaaaaaaaaabbbbbbbbbbccccccccccd"} {
		if e := CheckUserName(name); e != nil {
			t.Errorf("%q: %v", name, e)
		}
	}
	for name, want := range map[string]string{
		`EXAMPLE\john`: "use john", "john@example.org": "use john", "Jane.Doe": "use jane.doe", `EXAMPLE\Jane.Doe@example.org`: "use jane.doe", " jane ": "use jane",
	} {
		if e := CheckUserName(name); e == nil || e.Hint != want {
			t.Errorf("%q: %+v, want %q", name, e, want)
		}
	}
	if e := CheckUserName(`EXAMPLE\root`); e == nil || e.Hint == "use root" {
		t.Errorf("%+v", e)
	}
	i := &Image{Name: "hpc", Names: []string{"root", "elastic"}}
	if i.CheckImageName("elastic") == nil || i.CheckImageName("alice") != nil {
		t.Error("the image's own names")
	}
}

// Whatever a name is, what is said to fit does, and nothing passes that breaks a line of a
// file or leaves a folder.
func FuzzCheckUserName(f *testing.F) {
	f.Add("jane.doe")
	f.Add(`EXAMPLE\John@example.org`)
	f.Fuzz(func(t *testing.T, name string) {
		if CheckUserName(name) == nil && (strings.ContainsAny(name, ":/\\@ \t\r\n\x00") || strings.HasPrefix(name, ".") || strings.Contains(name, "..")) {
			t.Errorf("%q is taken", name)
		}
		if fits := fittingUserName(name); fits != "" && CheckUserName(fits) != nil {
			t.Errorf("%q does not fit for %q", fits, name)
		}
	})
}
