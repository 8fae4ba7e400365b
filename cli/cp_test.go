package cli_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/wire"
)

func needs(t *testing.T, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skip("there is no " + p + " here")
		}
	}
}

func TestCopy(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", "")
	t.Setenv("TMPDIR", t.TempDir())
	needs(t, "scp", "ssh")
	s := controltest.Start(t, controltest.Options{Machines: 3, Build: true})
	w := at(t, s).with("MUSTER_TOKEN", s.User("alice", "bio"))
	ready(t, s, w, "cfd", "-n", "2", "--head", "shared")
	here, there := t.TempDir(), t.TempDir()
	put := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	holds := func(path, want string) {
		t.Helper()
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s: %q %v", path, got, err)
		}
	}
	put(here+"/case/deep/in.dat", "deep")
	put(here+"/a b.dat", "spaces")
	put(here+"/x:y", "colon")
	w.run("cp", "-q", here+"/a b.dat", "cfd:"+there+"/one").want(t, 0)
	holds(there+"/one", "spaces")
	w.run("cp", "-r", here+"/case", here+"/x:y", "cfd/n02:"+there+"/").want(t, 0)
	holds(there+"/case/deep/in.dat", "deep")
	holds(there+"/x:y", "colon")
	put(there+"/1.out", "1")
	put(there+"/2.out", "2")
	w.run("cp", "-p", "cfd:"+there+"/*.out", "bio/cfd/n01:"+there+"/one", here).want(t, 0)
	holds(here+"/1.out", "1")
	holds(here+"/2.out", "2")
	holds(here+"/one", "spaces")
	if r := w.run("cp", "cfd:"+there+"/nothing", here); r.code == 0 {
		t.Error("a file that is not there is copied")
	}
	w.refused(3, muster.ReasonNoSuchNode, "cp", "cfd/n09:x", here).naming("n09")
	w.refused(3, muster.ReasonNoSuchCluster, "cp", "cfx:x", here).naming("cfx")
	w.refused(2, muster.ReasonContradiction, "cp", "cfd:x", "cfd/n02:x")
	w.refused(2, muster.ReasonRequired, "cp", "x", "./cfd:x").naming("CLUSTER:PATH")
	w.refused(2, muster.ReasonBadUsage, "cp", "cfd:x").naming("TARGET")
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "muster-ssh-*")); len(left) > 0 {
		t.Errorf("keys are left behind: %v", left)
	}
}

// A machine that is simulated has nobody to log in to, and a copy says so: scp only says that it
// lost the connection.
func TestCopyToNobody(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", "")
	t.Setenv("TMPDIR", t.TempDir())
	needs(t, "scp", "ssh")
	s := controltest.Start(t, controltest.Options{Machines: 3, Build: true})
	w := at(t, s).with("MUSTER_TOKEN", s.User("alice", "bio"))
	ready(t, s, w, "cfd", "-n", "2", "--head", "shared")
	s.Dialer.To(func(muster.Machine) (net.Conn, error) { // what listens there hangs up
		near, far := net.Pipe()
		return near, far.Close()
	})
	here := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(here, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"cp", here, "cfd:"}, {"cp", "cfd/n02:x", here}} {
		r := w.run(append(args, "-o", "json")...)
		if r.code == 0 || !strings.Contains(r.err, `"reason":"node-unreachable"`) || !strings.Contains(r.err, "simulated") || !strings.Contains(r.err, "--local") {
			t.Errorf("%v: %d %s", args, r.code, r.err)
		}
	}
}

// Plain ssh logs in by what ssh-config prints, and by nothing else: here with a certificate in
// the place of a key that the nodes know.
func TestSSHConfig(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", "")
	t.Setenv("TMPDIR", t.TempDir())
	needs(t, "ssh", "ssh-keygen")
	s := controltest.Start(t, controltest.Options{Machines: 6, Build: true})
	token := s.User("alice", "bio")
	w := at(t, s).with("MUSTER_TOKEN", token)
	ready(t, s, w, "cfd", "-n", "2", "--head", "shared")
	all := w.run("ssh-config").want(t, 0, "(?m)^Host cfd$", "(?m)^Host cfd.n01$", "(?m)^Host cfd.n02$", "(?m)^  User alice$", "KnownHostsCommand .*ssh-config --known-hosts c-").out
	if one := w.run("ssh-config", "cfd").want(t, 0).out; one != all {
		t.Errorf("%s\nis not\n%s", one, all)
	}
	if strings.Contains(all, token) {
		t.Error("a token is in the configuration")
	}
	w.run("ssh-config", "cfd", "-o", "json").want(t, 0, `"host": "cfd.n02"`, `"proxy_command": ".* tunnel c-[^ ]+ n02"`)
	w.refused(3, muster.ReasonNoSuchCluster, "ssh-config", "nope")

	dir := t.TempDir()
	config, key := filepath.Join(dir, "config"), filepath.Join(dir, "key")
	if err := os.WriteFile(config, []byte(all), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	public, err := os.ReadFile(key + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	access, err := s.Client(token).Access(t.Context(), "cfd", wire.AccessRequest{PublicKey: strings.TrimSpace(string(public))})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(key+"-cert.pub", []byte(access.Certificate+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]string{"cfd": "alice on n01", "cfd.n02": "alice on n02"} {
		cmd := exec.CommandContext(t.Context(), "ssh", "-F", config, "-i", key, "-o", "IdentitiesOnly=yes", "-o", "BatchMode=yes", host, "echo $USER on $NODE")
		cmd.Env = append(os.Environ(), "MUSTER_TOKEN="+token)
		if out, err := cmd.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != want {
			t.Errorf("%s: %v %s", host, err, out)
		}
	}
}
