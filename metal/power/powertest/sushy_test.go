package powertest

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal/power"
	"github.com/muster-hpc/muster/metal/power/bmc"
	"github.com/muster-hpc/muster/metal/power/drivers"
)

// TestSushy drives the Redfish emulator of OpenStack's sushy-tools, which
// somebody else wrote, with its fake machine. It is found in the PATH or named
// by MUSTER_SUSHY.
func TestSushy(t *testing.T) {
	t.Parallel()
	path := os.Getenv("MUSTER_SUSHY")
	if path == "" {
		path = tool(t, "sushy-emulator")
	}
	dir := t.TempDir()
	cert, err := bmc.SelfSigned()
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	const name = "11111111-1111-1111-1111-111111111111"
	files := map[string]string{
		"cert": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate[0]})),
		"key":  string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})),
		"conf": "SUSHY_EMULATOR_FAKE_SYSTEMS = [{'uuid': '" + name + "', 'name': 'fake', 'power_state': 'Off', 'nics': [], 'boot_device': 'Hdd', 'boot_mode': 'Legacy'}]\n",
	}
	for n, text := range files {
		if err := os.WriteFile(filepath.Join(dir, n), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	cmd := exec.Command(path, "--fake", "--config", filepath.Join(dir, "conf"), "-i", "127.0.0.1", "-p", strconv.Itoa(port),
		"--ssl-certificate", filepath.Join(dir, "cert"), "--ssl-key", filepath.Join(dir, "key"))
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "TMPDIR="+dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		c, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port), &tls.Config{InsecureSkipVerify: true})
		if err == nil {
			c.Close()
			break
		}
		if time.Now().After(end) {
			t.Fatalf("sushy-emulator does not start: %v", err)
		}
	}
	s := Subject{
		Drivers: drivers.All(), Password: password,
		Target: power.Target{Machine: "m1", Rack: "r1", Secret: secret, Address: muster.PowerAddress{
			Kind: muster.PowerRedfish, Address: local(port), User: user,
			CertificateSHA256: fmt.Sprintf("%x", sha256.Sum256(cert.Certificate[0])), Quirk: "blind-boot"}},
		Times: power.Times{Command: 20 * time.Second, Rise: 30 * time.Second, Fall: 30 * time.Second, Poll: 200 * time.Millisecond},
	}
	c := s.control(t)
	for range 2 {
		r, err := c.Boot(within(t, 100*time.Second), s.Target)
		if err != nil || r.State != power.On {
			t.Fatalf("boot: %+v, %v", r, err)
		}
	}
	rec := c.Fence(within(t, 100*time.Second), s.Target)
	if !rec.Proven {
		t.Errorf("fence: %+v", rec)
	}
}
