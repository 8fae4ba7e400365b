package cli_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/api/client"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/daemon/gatewayproc"
	"github.com/muster-hpc/muster/gateway"
	"github.com/muster-hpc/muster/internal/connlimit"
	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/wire"
	"golang.org/x/crypto/ssh"
)

// keyFile makes a private key in a file, and returns its public line.
func keyFile(t *testing.T, path string) string {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err == nil {
		err = os.WriteFile(path, pem.EncodeToMemory(block), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return pki.Line(key)
}

// realSSHD starts OpenSSH's server for each connection, as a node has it: it lets in a key of root's, and has a certificate of the
// site's authority under these names.
func realSSHD(t *testing.T, hosts pki.SSHAuthority, userKey string, names ...string) func(context.Context, string) (net.Conn, error) {
	t.Helper()
	dir := t.TempDir()
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(keyFile(t, dir+"/host")))
	if err != nil {
		t.Fatal(err)
	}
	cert, err := hosts.SignHost(key, names, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"host-cert.pub": pki.Line(cert) + "\n", "keys": userKey + "\n",
		"conf": "HostKey " + dir + "/host\nHostCertificate " + dir + "/host-cert.pub\nAuthorizedKeysFile " + dir + "/keys\nStrictModes no\nUsePAM no\nPermitRootLogin yes\nLogLevel ERROR\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.CommandContext(t.Context(), "/usr/sbin/sshd", "-t", "-f", dir+"/conf").CombinedOutput(); err != nil {
		t.Skipf("no sshd here: %v %s", err, out)
	}
	return func(ctx context.Context, _ string) (net.Conn, error) {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		near, err := (&net.Dialer{}).DialContext(ctx, "tcp4", l.Addr().String())
		if err != nil {
			return nil, err
		}
		far, err := l.Accept()
		if err != nil {
			return nil, err
		}
		defer far.Close()
		f, err := far.(*net.TCPConn).File()
		if err != nil {
			return nil, err
		}
		defer f.Close()
		cmd := exec.CommandContext(context.WithoutCancel(ctx), "/usr/sbin/sshd", "-i", "-e", "-f", dir+"/conf")
		cmd.Stdin, cmd.Stdout = f, f
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		go func() { _ = cmd.Wait() }()
		return near, nil
	}
}

// While the server is away people log in through the straight door of a gateway, with keys that are on record, for as long as what
// the gateway knows is good.
func TestStraightDoorWithoutTheServer(t *testing.T) { //nolint:paralleltest // what ssh starts has the environment of this process
	if os.Getuid() != 0 {
		t.Skip("sshd logs in the user who started it: here it is to be root")
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	s := controltest.Start(t, controltest.Options{Machines: 1, Build: true})
	hosts, err := pki.NewSSHAuthority()
	if err != nil {
		t.Fatal(err)
	}
	s.Control.Hosts = hosts
	socket := filepath.Join(t.TempDir(), "muster.sock")
	if err := os.Symlink(s.Socket, socket); err != nil {
		t.Fatal(err)
	}
	w := at(t, s).with("MUSTER_TOKEN", s.User("alice", "bio")).with("MUSTER_SERVER", "unix:"+socket).with("XDG_CACHE_HOME", os.Getenv("XDG_CACHE_HOME"))
	t.Setenv("MUSTER_SERVER", "unix:"+socket)
	t.Setenv("MUSTER_TOKEN", w.env["MUSTER_TOKEN"])
	created := ready(t, s, w, "cfd", "-n", "1", "--head", "shared")
	key := filepath.Join(t.TempDir(), "key")
	line := keyFile(t, key)
	root := s.Client("")
	if _, err := root.AddKey(t.Context(), "alice", wire.KeyRequest{Key: line}); err != nil {
		t.Fatal(err)
	}
	g, err := root.AddGateway(t.Context(), wire.GatewayRequest{Name: "gw1", Hosts: []string{"localhost"}})
	if err != nil {
		t.Fatal(err)
	}
	clock := controltest.NewStoppedClock()
	stop := startGateway(t, gatewayproc.Config{Server: awayWith{s.Client(g.Token), socket}, Clock: clock, Dial: realSSHD(t, hosts, line, "cfd", "cfd.n01", string(created.ID)+".n01")})
	defer stop()
	conf := filepath.Join(t.TempDir(), "config")
	until(t, "the gateway's address", func() bool {
		return strings.Contains(w.run("ssh-config", "cfd", "--identity", key).out, " connect --identity "+key+" ")
	})
	until(t, "its address is kept", func() bool {
		w.run("ssh-config", "cfd")
		found, _ := filepath.Glob(filepath.Join(os.Getenv("XDG_CACHE_HOME"), "muster", "gateways-*.json"))
		text := []byte{}
		if len(found) == 1 {
			text, _ = os.ReadFile(found[0])
		}
		return strings.Contains(string(text), `"127.0.0.1:`)
	})
	if err := os.WriteFile(conf, []byte(w.run("ssh-config", "cfd", "--identity", key).out), 0o600); err != nil {
		t.Fatal(err)
	}
	plain := func(more ...string) (string, error) {
		args := append([]string{"-F", conf, "-o", "BatchMode=yes", "-l", "root"}, more...)
		out, err := exec.CommandContext(t.Context(), "ssh", args...).CombinedOutput()
		return string(out), err
	}
	sessions := func() []muster.GatewaySession {
		list, err := root.GatewaySessions(t.Context(), wire.GatewayQuery{})
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	// The server has no gateway of its own: the ticket is the other one's. The nodes here have host keys that are not on record.
	authority := filepath.Join(t.TempDir(), "known_hosts")
	if err := os.WriteFile(authority, []byte(w.run("gateway", "known-hosts").want(t, 0).out), 0o600); err != nil {
		t.Fatal(err)
	}
	straight := []string{"-o", "KnownHostsCommand=none", "-o", "UserKnownHostsFile=" + authority}
	if out, err := plain(append(straight, "cfd", "echo in")...); err != nil || out != "in\n" {
		t.Errorf("with the server: %q, %v", out, err)
	}
	until(t, "its record", func() bool { return len(sessions()) == 1 })
	if x := sessions()[0]; x.Door != muster.DoorStraight || x.Gateway != "gw1" || x.Fingerprint == "" || x.Token != "" {
		t.Errorf("%+v", x)
	}

	if err := os.Remove(socket); err != nil { // the server is away
		t.Fatal(err)
	}
	w.refused(7, muster.ReasonServerUnreachable, "list")
	if out, err := plain("cfd", "echo in"); err != nil || out != "in\n" {
		t.Errorf("without the server: %q, %v", out, err)
	}
	w.run("ssh", "cfd", "--user", "root", "--identity", key, "--", "echo in").want(t, 0, `^in\n`, `the server does not answer: logging in by the gateway`)
	w.run("ssh", "cfx", "--user", "root", "--identity", key, "--", "true").want(t, 255, `you have no cluster "cfx"`)
	stranger := filepath.Join(t.TempDir(), "stranger")
	keyFile(t, stranger)
	w.run("ssh", "cfd", "--user", "root", "--identity", stranger, "--", "true").want(t, 255, `gives no ticket: .*Permission denied`)

	clock.Add(16 * time.Minute)
	if out, err := plain("cfd", "echo in"); err == nil || !strings.Contains(out, "Permission denied") {
		t.Errorf("after more than 15 minutes: %q, %v", out, err)
	}
	if err := os.Symlink(s.Socket, socket); err != nil { // it is back, and hears what was
		t.Fatal(err)
	}
	until(t, "the records", func() bool { return len(sessions()) == 3 })
	if out, err := plain(append(straight, "cfd", "echo in")...); err != nil || out != "in\n" {
		t.Errorf("it is back: %q, %v", out, err)
	}
}

// awayWith is a server that is away while its socket is.
type awayWith struct {
	*client.Client
	socket string
}

func (a awayWith) gone() error {
	if _, err := os.Lstat(a.socket); err != nil {
		return muster.Errorf(muster.EUnavailable, "away").Because(muster.ReasonServerUnreachable)
	}
	return nil
}

func (a awayWith) GatewayPoll(ctx context.Context, q wire.GatewayPoll) (wire.GatewayOrders, error) {
	if err := a.gone(); err != nil {
		return wire.GatewayOrders{}, err
	}
	return a.Client.GatewayPoll(ctx, q)
}

func (a awayWith) GatewayRecords(ctx context.Context, r wire.GatewayRecords) error {
	if err := a.gone(); err != nil {
		return err
	}
	return a.Client.GatewayRecords(ctx, r)
}

// startGateway starts a gateway as a process has it, and returns what ends it.
func startGateway(t *testing.T, c gatewayproc.Config) func() {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c.Listener, c.State, c.Poll, c.Log = l, t.TempDir(), 50*time.Millisecond, slog.New(slog.DiscardHandler)
	c.Limits, c.Places = gateway.Limits{Handshake: 5 * time.Minute}, connlimit.Limits{Total: 100, PerAddress: 100, PerName: 50}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- gatewayproc.Run(ctx, ctx, c) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it never came: " + what)
		}
	}
}
