package gateway_test

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	mathrand "math/rand/v2"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/gateway/flow/flowtest"
	"github.com/muster-hpc/muster/internal/stat"
	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/store"
	"golang.org/x/sys/unix"
)

// ways are those from a client to a node that are held against each other; direct is what all are
// held against.
func ways() []string {
	return []string{"direct", "straight", "splice", "jump", "plain", "sshd", "relay"}
}

// bench is a rig whose node is OpenSSH's server, whose client is its client, and whose API is
// reached by TLS.
type bench struct {
	*straightRig
	dir     string
	conf    string
	spliced atomic.Bool
}

func number(t *testing.T, name string, usual int) int {
	t.Helper()
	n, err := strconv.Atoi(cmp.Or(os.Getenv(name), strconv.Itoa(usual)))
	if err != nil || n < 0 {
		t.Fatalf("%s is no number", name)
	}
	return n
}

// TestBenchGateway is 'make bench-gateway'. RUNS, FILE_MB, FILES, LOGINS, IDLE and RATES ("1gbit
// none") choose how much; the table is written to OUT.
func TestBenchGateway(t *testing.T) {
	if os.Getenv("BENCH_GATEWAY") == "" {
		t.Skip("measures: make bench-gateway")
	}
	runs, fileMB, files := number(t, "RUNS", 10), number(t, "FILE_MB", 442), number(t, "FILES", 4000)
	b := newBench(t)
	if err := b.inputs(fileMB, files); err != nil {
		t.Fatal(err)
	}
	out := &strings.Builder{}
	fmt.Fprintf(out, "One file of %d MB, and %d files of %d KB in one directory; %d runs, the ways in random order in each; %d processors, Linux %s, %s.\n",
		fileMB, files, dirFile>>10, runs, runtime.NumCPU(), kernelRelease(), version(t))
	defer func() { // also what was measured before something failed
		t.Log("\n" + out.String())
		if to := os.Getenv("OUT"); to != "" {
			if err := os.WriteFile(to, []byte(out.String()), 0o644); err != nil {
				t.Error(err)
			}
		}
	}()
	for _, rate := range strings.Fields(cmp.Or(os.Getenv("RATES"), "1gbit none")) {
		if err := b.shape(rate); err != nil {
			t.Fatal(err)
		}
		b.transfers(out, rate, runs)
	}
	if err := b.shape("none"); err != nil {
		t.Fatal(err)
	}
	b.logins(out, number(t, "LOGINS", 20))
	b.idle(out, number(t, "IDLE", 100))
}

const dirFile = 10 << 10 // 4,000 of these are 41 MB

func kernelRelease() string {
	var u unix.Utsname
	_ = unix.Uname(&u)
	return unix.ByteSliceToString(u.Release[:])
}

func version(t *testing.T) string {
	t.Helper()
	b, _ := exec.CommandContext(t.Context(), "ssh", "-V").CombinedOutput()
	return strings.TrimSpace(string(b))
}

func newBench(t *testing.T) *bench {
	t.Helper()
	muster := os.Getenv("MUSTER")
	for _, p := range []string{muster, "/usr/sbin/sshd", "rsync", "tc", "unshare"} {
		if _, err := exec.LookPath(p); err != nil {
			t.Fatalf("%s is missing: %v", cmp.Or(p, "MUSTER=bin/muster"), err)
		}
	}
	b := &bench{straightRig: newStraightTo(t, true, false)}
	var err error
	if b.dir, err = os.MkdirTemp("/dev/shm", "muster-bench-"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(b.dir) })
	_ = os.Chmod(b.dir, 0o755)
	id := b.make("cfd", "alice")
	b.splitWays()
	b.gatewayThere()
	ca := b.api()
	b.keys(id)
	b.sshd("node", b.net.Node, "Port 22\n")
	b.sshd("jump", b.net.Gateway, "Port 2300\nAllowTcpForwarding yes\n")
	b.sshd("relay", b.net.Gateway, "Port 2301\nForceCommand exec bash -c 'exec 3<>/dev/tcp/"+flowtest.NodeAddress+"/22; cat <&3 & cat >&3; kill %1'\n")
	b.config(muster, ca)
	for _, w := range ways() {
		if out, err := b.ssh(w, "true"); err != nil {
			t.Fatalf("%s: %v %s", w, err, out)
		}
	}
	return b
}

// splitWays makes the straight door go through the kernel, or not, as the run wants.
func (b *bench) splitWays() {
	b.site.Control.Routed = func(muster.Machine) netip.Addr {
		if b.spliced.Load() {
			return netip.Addr{}
		}
		return netip.MustParseAddr(flowtest.NodeAddress)
	}
	b.site.Dialer.To(func(muster.Machine) (net.Conn, error) {
		return b.net.Gateway.Dial(context.Background(), "", flowtest.NodeAddress+":22")
	})
}

// gatewayThere has the gateway listen in its namespace, too.
func (b *bench) gatewayThere() {
	b.t.Helper()
	l, err := b.net.Gateway.Listen(flowtest.GatewayAddress + ":2200")
	if err != nil {
		b.t.Fatal(err)
	}
	b.address = l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	g := b.gateway
	go func() {
		defer close(done)
		_ = g.Serve(ctx, l)
	}()
	b.t.Cleanup(func() { cancel(); <-done })
}

// api serves the API by TLS, and returns the file of who vouches for it.
func (b *bench) api() string {
	b.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		b.t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "bench"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.ParseIP(flowtest.GatewayAddress)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		b.t.Fatal(err)
	}
	ca := b.file("ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	l, err := b.net.Gateway.Listen(flowtest.GatewayAddress + ":8443")
	if err != nil {
		b.t.Fatal(err)
	}
	server := b.site.API.HTTPServer()
	go func() {
		_ = server.Serve(tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS13}))
	}()
	b.t.Cleanup(func() { _ = server.Close() })
	return ca
}

func (b *bench) file(name, text string) string {
	b.t.Helper()
	path := filepath.Join(b.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
	return path
}

// keys makes alice's key, and has the node's as it is on record.
func (b *bench) keys(id muster.ClusterID) {
	b.t.Helper()
	alice := filepath.Join(b.dir, "alice")
	if out, err := exec.CommandContext(b.t.Context(), "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", alice).CombinedOutput(); err != nil {
		b.t.Fatal(err, string(out))
	}
	public, err := os.ReadFile(alice + ".pub")
	if err != nil {
		b.t.Fatal(err)
	}
	b.addKey("alice", string(public))
	var users pki.SSHAuthority
	err = b.site.Store.View(b.t.Context(), muster.System(), func(tx *store.Tx) error {
		text, err := tx.Secret(id, muster.SecretUserCA)
		if err == nil {
			users, err = pki.ParseSSHAuthority(text)
		}
		if err != nil {
			return err
		}
		text, err = tx.Secret(id, muster.SecretHostKey("n01"))
		b.file("host", string(text))
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	b.file("users", users.PublicLine()+"\n")
	_ = os.Chmod(b.file("principals", "alice@"+string(id)+"\n"), 0o644)
	_ = os.Chmod(b.file("authorized", string(public)), 0o644)
	_ = os.Chmod(b.file("passwd", "root:*:0:0:root:/root:/bin/bash\nsshd:*:101:65534::/run/sshd:/usr/sbin/nologin\nalice:*:1000:1000::"+b.dir+"/home:/bin/bash\n"), 0o644)
	home := filepath.Join(b.dir, "home")
	_ = os.Mkdir(home, 0o755)
	_ = os.Chown(home, 1000, 1000)
}

// sshd starts OpenSSH's server, for which alice is a user of the host.
func (b *bench) sshd(name string, p flowtest.Place, more string) {
	b.t.Helper()
	_ = os.MkdirAll("/run/sshd", 0o755)
	conf := b.file(name+".conf", more+"HostKey "+b.dir+"/host\nTrustedUserCAKeys "+b.dir+"/users\nAuthorizedPrincipalsFile "+b.dir+
		"/principals\nAuthorizedKeysFile "+b.dir+"/authorized\nUsePAM no\nStrictModes no\nPidFile none\nMaxStartups 1000\nMaxSessions 100\nUseDNS no\nPerSourcePenalties no\nSubsystem sftp internal-sftp\nCiphers aes128-gcm@openssh.com\n")
	text, _ := os.ReadFile(conf)
	if out, err := exec.CommandContext(b.t.Context(), "/usr/sbin/sshd", "-t", "-f", conf).CombinedOutput(); err != nil && strings.Contains(string(out), "PerSourcePenalties") {
		b.file(name+".conf", strings.Replace(string(text), "PerSourcePenalties no\n", "", 1))
	}
	cmd := exec.Command("unshare", "-m", "-p", "-f", "--kill-child", "sh", "-c", "mount --bind "+b.dir+"/passwd /etc/passwd && exec /usr/sbin/sshd -D -e -f "+conf)
	log, err := os.Create(filepath.Join(b.dir, name+".log"))
	if err != nil {
		b.t.Fatal(err)
	}
	cmd.Stderr = log
	if err := p.Do(cmd.Start); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		_ = cmd.Process.Signal(unix.SIGTERM)
		_ = cmd.Wait()
	})
}

// config is what ssh reads: a host for each way.
func (b *bench) config(muster, ca string) {
	muster, err := filepath.Abs(muster)
	if err != nil {
		b.t.Fatal(err)
	}
	token := b.file("token", b.tokens["alice"])
	connect := fmt.Sprintf("ProxyCommand %s --server https://%s:8443 --ca %s --token-file %s connect cfd\n  ProxyUseFdpass yes", muster, flowtest.GatewayAddress, ca, token)
	var text strings.Builder
	for _, h := range [][2]string{
		{"direct", "HostName " + flowtest.NodeAddress},
		{"straight", connect},
		{"splice", connect},
		{"jump", "HostName cfd\n  ProxyJump gw"},
		{"plain", "HostName " + flowtest.GatewayAddress + "\n  Port 2200\n  User cfd+alice"},
		{"sshd", "HostName " + flowtest.NodeAddress + "\n  ProxyJump gwsshd"},
		{"relay", "HostName cfd\n  ProxyCommand ssh -F " + b.dir + "/ssh.conf gwrelay"},
		{"gw", "HostName " + flowtest.GatewayAddress + "\n  Port 2200"},
		{"gwsshd", "HostName " + flowtest.GatewayAddress + "\n  Port 2300"},
		{"gwrelay", "HostName " + flowtest.GatewayAddress + "\n  Port 2301"},
	} {
		fmt.Fprintf(&text, "Host %s\n  %s\n", h[0], h[1])
	}
	fmt.Fprintf(&text, "Host *\n  User alice\n  IdentityFile %s/alice\n  IdentitiesOnly yes\n  BatchMode yes\n  LogLevel ERROR\n  StrictHostKeyChecking no\n  UserKnownHostsFile /dev/null\n  GlobalKnownHostsFile /dev/null\n  Ciphers aes128-gcm@openssh.com\n", b.dir)
	b.conf = b.file("ssh.conf", text.String())
}

// sh runs a command of the client, by one way.
func (b *bench) sh(way, command string) (string, error) {
	b.spliced.Store(way == "splice")
	return b.net.Client.Run("bash", "-o", "pipefail", "-c", command)
}

func (b *bench) ssh(way, command string) (string, error) {
	return b.sh(way, "ssh -F "+b.conf+" "+way+" "+command)
}

// inputs makes what is copied, of bytes that do not compress.
func (b *bench) inputs(fileMB, files int) error {
	random, err := os.Open("/dev/urandom")
	if err != nil {
		return err
	}
	defer random.Close()
	buf := make([]byte, 1<<20)
	if _, err := random.Read(buf); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(b.dir, "file"))
	if err != nil {
		return err
	}
	defer f.Close()
	for range fileMB {
		if _, err := f.Write(buf[:1_000_000]); err != nil {
			return err
		}
	}
	if err := os.Mkdir(filepath.Join(b.dir, "tree"), 0o755); err != nil {
		return err
	}
	for i := range files {
		at := mathrand.IntN(len(buf) - dirFile)
		if err := os.WriteFile(filepath.Join(b.dir, "tree", fmt.Sprintf("f%05d", i)), buf[at:at+dirFile], 0o644); err != nil {
			return err
		}
	}
	return nil
}

// shape bounds what every interface sends; "none" does not.
func (b *bench) shape(rate string) error {
	for _, x := range []struct {
		p   flowtest.Place
		dev string
	}{{b.net.Client, "eth0"}, {b.net.Gateway, "clients"}, {b.net.Gateway, "nodes"}, {b.net.Node, "eth0"}} {
		_, _ = x.p.Run("tc", "qdisc", "del", "dev", x.dev, "root")
		if rate == "none" {
			continue
		}
		if _, err := x.p.Run("tc", "qdisc", "add", "dev", x.dev, "root", "tbf", "rate", rate, "burst", "256kb", "latency", "50ms"); err != nil {
			return err
		}
	}
	return nil
}

// copies are the commands that carry something to the node.
func (b *bench) copies(way, what string) map[string]string {
	from, recursive, put := filepath.Join(b.dir, what), "", "put"
	if what == "tree" {
		recursive, put = "-r", "put -r"
	}
	return map[string]string{
		"scp":   fmt.Sprintf("scp -q -F %s %s %s %s:to", b.conf, recursive, from, way),
		"sftp":  fmt.Sprintf("echo '%s %s to' | sftp -q -F %s -b - %s > /dev/null", put, from, b.conf, way),
		"rsync": fmt.Sprintf("rsync -a -e 'ssh -F %s' %s %s:to", b.conf, from, way),
		"tar":   fmt.Sprintf("tar -C %s -cf - %s | ssh -F %s %s 'mkdir -p to && tar -C to -xf -'", b.dir, what, b.conf, way),
	}
}

// clean removes what was copied.
func (b *bench) clean() {
	list, _ := filepath.Glob(filepath.Join(b.dir, "home", "*"))
	for _, p := range list {
		_ = os.RemoveAll(p)
	}
}

// transfers copies by each way with each program, and writes the speed as a share of direct's.
func (b *bench) transfers(out *strings.Builder, rate string, runs int) {
	b.t.Helper()
	for _, what := range []string{"file", "tree"} {
		fmt.Fprintf(out, "\n%s, %s: share of the direct speed (median, 95 %% interval of the median)\n\n| way | scp | sftp | rsync | tar | CPU s/GiB of the gateway's process over direct |\n|---|---|---|---|---|---|\n", rate, what)
		took, cpu, bytes := map[string]map[string][]float64{}, map[string]float64{}, b.size(what)
		for _, w := range ways() {
			took[w] = map[string][]float64{}
		}
		for range runs {
			for _, program := range []string{"scp", "sftp", "rsync", "tar"} {
				order := ways()
				mathrand.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
				for _, w := range order {
					b.clean()
					if program == "sftp" && what == "tree" {
						_, _ = exec.Command("install", "-d", "-o", "1000", "-g", "1000", filepath.Join(b.dir, "home", "to")).CombinedOutput()
					}
					before, began := ownCPU(), time.Now()
					if text, err := b.sh(w, b.copies(w, what)[program]); err != nil {
						b.t.Fatalf("%s by %s: %v %s", program, w, err, text)
					}
					took[w][program] = append(took[w][program], time.Since(began).Seconds())
					cpu[w] += ownCPU() - before
				}
			}
		}
		for _, w := range ways() {
			fmt.Fprintf(out, "| %s |", w)
			for _, program := range []string{"scp", "sftp", "rsync", "tar"} {
				if w == "direct" {
					fmt.Fprintf(out, " %.0f MB/s |", bytes/1e6/stat.Median(took[w][program]))
					continue
				}
				var ratios []float64
				for i, d := range took["direct"][program] {
					ratios = append(ratios, d/took[w][program][i])
				}
				fmt.Fprintf(out, " %s |", spread(ratios, "%.2f"))
			}
			fmt.Fprintf(out, " %.2f |\n", (cpu[w]-cpu["direct"])/(bytes*float64(4*runs)/(1<<30)))
		}
	}
}

// spread is a median with its interval; with few values the interval is their range.
func spread(x []float64, format string) string {
	if in, err := stat.MedianInterval(x, 0.95); err == nil {
		return fmt.Sprintf(format+" ("+format+"–"+format+")", stat.Median(x), in.Low, in.High)
	}
	return fmt.Sprintf(format+" ("+format+"–"+format+", range)", stat.Median(x), stat.Quantile(x, 0), stat.Quantile(x, 1))
}

func (b *bench) size(what string) (n float64) {
	_ = filepath.WalkDir(filepath.Join(b.dir, what), func(_ string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			info, _ := d.Info()
			n += float64(info.Size())
		}
		return err
	})
	return n
}

// ownCPU is the processor time of this process: the gateway's, and the server's, but for little.
func ownCPU() float64 {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &u)
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// logins measures how long 'ssh HOST true' takes.
func (b *bench) logins(out *strings.Builder, n int) {
	b.t.Helper()
	if n == 0 {
		return
	}
	took := map[string][]float64{}
	for range n {
		order := ways()
		mathrand.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for _, w := range order {
			began := time.Now()
			if text, err := b.ssh(w, "true"); err != nil {
				b.t.Fatal(w, err, text)
			}
			took[w] = append(took[w], float64(time.Since(began).Microseconds())/1000)
		}
	}
	fmt.Fprintf(out, "\nLog-in (ssh HOST true), ms, %d of each\n\n| way | ms | over direct |\n|---|---|---|\n", n)
	for _, w := range ways() {
		var over []float64
		for i, d := range took["direct"] {
			over = append(over, took[w][i]-d)
		}
		fmt.Fprintf(out, "| %s | %s | %s |\n", w, spread(took[w], "%.0f"), spread(over, "%.0f"))
	}
}

// idle measures what sessions that do nothing cost the gateway's process.
func (b *bench) idle(out *strings.Builder, n int) {
	b.t.Helper()
	if n == 0 {
		return
	}
	memory := func() float64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapInuse+m.StackInuse) / 1024
	}
	fmt.Fprintf(out, "\nMemory of the gateway's process (heap and stacks), KiB for each of %d idle sessions\n\n| door | KiB |\n|---|---|\n", n)
	for _, w := range []string{"straight", "splice", "jump", "plain"} {
		b.until("the end of other sessions", func() bool { return len(b.gateway.Sessions()) == 0 })
		before := memory()
		var all []*exec.Cmd
		b.spliced.Store(w == "splice")
		open := len(b.gateway.Sessions())
		for range n {
			cmd := exec.Command("ssh", "-F", b.conf, w, "exec sleep 3600")
			if err := b.net.Client.Do(cmd.Start); err != nil {
				b.t.Fatal(err)
			}
			all = append(all, cmd)
			if len(all)%10 == 0 {
				want := open + len(all)
				b.until(w+": idle sessions", func() bool { return len(b.gateway.Sessions()) >= want })
			}
		}
		b.until(w+": idle sessions", func() bool { return len(b.gateway.Sessions()) >= open+n })
		time.Sleep(time.Second)
		fmt.Fprintf(out, "| %s | %.1f |\n", w, (memory()-before)/float64(n))
		for _, c := range all {
			_ = c.Process.Kill()
			_ = c.Wait()
		}
		b.until("their end", func() bool { return len(b.gateway.Sessions()) <= open })
	}
}
