package configure

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/muster-hpc/muster/wire"
	"pgregory.net/rapid"
)

var bob = wire.Account{Name: "bob", UID: 20001, GID: 20001, Keys: []string{"ssh-ed25519 BBBB bob"}}

// In one configuration somebody comes whom the image has no room for, and bob goes: bob
// has gone, the others have what is new for them, and the one who cannot come is told.
func TestOneBadNameStopsNobodyElse(t *testing.T) {
	t.Parallel()
	for name, bad := range map[string]wire.Account{
		"a group of the image":    {Name: "video", UID: 20009, GID: 20009, Keys: []string{"ssh-ed25519 VVVV"}},
		"an account of the image": {Name: "munge", UID: 20009, GID: 20009, Keys: []string{"ssh-ed25519 VVVV"}},
		"a number of the image":   {Name: "dave", UID: 64030, GID: 20009},
		"a name that cannot be":   {Name: "a:x:0:0", UID: 20009, GID: 20009},
		"a number that cannot be": {Name: "dave", UID: 3, GID: 20009},
		"two lines of a key":      {Name: "dave", UID: 20009, GID: 20009, Keys: []string{"a\nb"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, _, root := node(t)
			group := filepath.Join(root, "etc/group")
			text, err := os.ReadFile(group)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(group, append(text, "video:x:44:\n"...), 0o644); err != nil {
				t.Fatal(err)
			}
			first := config()
			first.Users = append(first.Users, bob)
			if err := c.Apply(t.Context(), copied(first), newReport(t)); err != nil {
				t.Fatal(err)
			}
			next := config()
			next.Generation = 2
			next.Users[0].Keys = []string{"ssh-ed25519 NEW"}
			next.Users = append(next.Users, bad, wire.Account{Name: "carol", UID: 20002, GID: 20002})
			err = c.Apply(t.Context(), copied(next), newReport(t))
			var in *Incomplete
			if !errors.As(err, &in) || len(in.Parts) != 1 || in.Parts[0].Name != "user" || !strings.Contains(err.Error(), bad.Name) {
				t.Fatalf("told: %v", err)
			}
			files := tree(t, root)
			if p := files["/etc/passwd"]; strings.Contains(p, "bob:") || !strings.Contains(p, "alice:") || !strings.Contains(p, "carol:") || strings.Contains(p, ":20009:") || strings.Contains(p, "dave") {
				t.Errorf("passwd: %s", p)
			}
			for path := range files {
				if strings.HasSuffix(path, "/bob") && strings.HasPrefix(path, "/etc/ssh/") || strings.HasPrefix(path, "/etc/ssh/") && strings.HasSuffix(path, "/"+bad.Name) {
					t.Errorf("%s lets somebody in", path)
				}
			}
			if !strings.Contains(files["/etc/ssh/authorized_keys.d/alice"], "NEW") {
				t.Error("the new key of another is not there")
			}
			// Once the bad name is gone all is well, and nothing of it is left.
			next.Generation, next.Users = 3, next.Users[:1]
			if err := c.Apply(t.Context(), copied(next), newReport(t)); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// A node that boots comes up without the one whom its image has no room for.
func TestANewNodeWithOneBadName(t *testing.T) {
	t.Parallel()
	c, _, root := node(t)
	cfg := config()
	cfg.Users = append(cfg.Users, wire.Account{Name: "slurm", UID: 20009, GID: 20009, Keys: []string{"ssh-ed25519 SSSS"}})
	err := c.Apply(t.Context(), copied(cfg), newReport(t))
	var in *Incomplete
	if !errors.As(err, &in) || !in.Incomplete() {
		t.Fatalf("%v", err)
	}
	files := tree(t, root)
	if !strings.Contains(files["/etc/passwd"], "alice:") || files["/etc/ssh/authorized_keys.d/slurm"] != "" {
		t.Errorf("%s", files["/etc/passwd"])
	}
}

// Whichever other parts fail, who left cannot come in.
func TestRemovalsComeFirstProperty(t *testing.T) {
	t.Parallel()
	blocks := map[string]string{ // a directory where a part must write a file
		"names": "/etc/hosts", "environment": "/etc/environment", "slurm": "/etc/slurm/slurm.conf", "files": "/srv/x",
		"notices": "/etc/motd", "known hosts": "/etc/ssh/ssh_known_hosts", "host key": "/etc/ssh/ssh_host_ed25519_key",
		"munge": "/etc/munge/munge.key", "mpi": "/etc/openmpi/prte.conf", "accounts": "/etc/passwd", "home": "/home/carol",
	}
	rapid.Check(t, func(rt *rapid.T) {
		c, _, root := node(t)
		first := config()
		first.Users = append(first.Users, bob)
		if err := c.Apply(t.Context(), copied(first), newReport(t)); err != nil {
			rt.Fatal(err)
		}
		for name, path := range blocks {
			if !rapid.Bool().Draw(rt, name) {
				continue
			}
			at := filepath.Join(root, path)
			if err := os.RemoveAll(at); err != nil {
				rt.Fatal(err)
			}
			if err := os.MkdirAll(filepath.Join(at, "in the way"), 0o755); err != nil {
				rt.Fatal(err)
			}
		}
		next := config()
		next.Generation = 2
		next.SSH.HostKey, next.Slurm.MungeKey = "ANOTHER", "YW5vdGhlcmFub3RoZXJhbm90aGVyYW5vdGhlcmFub3RoZXI="
		next.Files = []wire.File{{Path: "/srv/x", Mode: 0o644, Content: "x"}}
		next.Users = append(next.Users, wire.Account{Name: "carol", UID: 20002, GID: 20002})
		_ = c.Apply(t.Context(), copied(next), newReport(t))
		for _, path := range []string{principals + "bob", authorizedKeys + "bob"} {
			if _, err := os.Lstat(filepath.Join(root, path)); err == nil {
				rt.Fatalf("%s is still there", path)
			}
		}
		if _, err := os.Stat(filepath.Join(root, authorizedKeys+"alice")); err != nil {
			rt.Fatalf("who stays cannot come in any more: %v", err)
		}
	})
}

// A process that starts another one as soon as it is looked at ends, too.
func TestKillUserEndsAllThatForks(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("ends processes of another user: needs root")
	}
	const uid = 64099
	cmd := exec.Command("/bin/sh", "-c", `n=0; while [ $n -lt 500 ]; do n=$((n+1)); (sleep 0.02; setsid sleep 600) & sleep 0.005; done; wait`)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waited := make(chan error, 1)
	go func() { waited <- cmd.Wait() }()
	time.Sleep(100 * time.Millisecond)
	err := killUser(uid)
	if err != nil {
		t.Error(err)
	}
	<-waited
	if n, err := killOnce(uid); n != 0 || err != nil {
		t.Error(fmt.Errorf("%d are left: %w", n, err))
	}
}
