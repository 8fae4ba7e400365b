package muster

import "testing"

func TestCheckUserName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"muster", "sudo", "docker", "video", "staff", "root", "postgres", "statd", "operator", "adm", "everyone", "tcpdump", "chrony",
		"tty", "disk", "kmem", "dialout", "fax", "voice", "cdrom", "floppy", "tape", "audio", "dip", "src", "shadow", "utmp", "sasl", "plugdev",
		"users", "input", "sgx", "clock", "kvm", "render", "rdma", "crontab", "systemd-network", "muster-probe", "wheel", "nogroup", "slurm", "munge",
		"", "Jane", "jane.doe", `EXAMPLE\john`, "jane@x", "_apt", "1x", "a b", "a:b", "aaaaaaaaaabbbbbbbbbbccccccccccdd",
	} {
		if e := CheckUserName(name); e == nil || e.Hint == "" {
			t.Errorf("%q is taken", name)
		}
	}
	for _, name := range []string{"alice", "bob", "jane_doe", "x", "a-1", "aaaaaaaaaabbbbbbbbbbccccccccccd"} {
		if e := CheckUserName(name); e != nil {
			t.Errorf("%q: %v", name, e)
		}
	}
	i := &Image{Name: "hpc", Names: []string{"root", "elastic"}}
	if i.CheckImageName("elastic") == nil || i.CheckImageName("alice") != nil {
		t.Error("the image's own names")
	}
}
