package local_test

import (
	"context"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal/initramfs"
	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/provider/local/network"
)

// TestVMImage boots a whole image as a virtual machine until the agent in it comes to the server, over the management network. MUSTER_TEST_VM_IMAGE
// names the directory of an image with a kernel, such as hpc-vm's in the cache of images.
func TestVMImage(t *testing.T) {
	image := os.Getenv("MUSTER_TEST_VM_IMAGE")
	if image == "" {
		t.Skip("takes minutes where QEMU translates: MUSTER_TEST_VM_IMAGE names an image with a kernel")
	}
	cfg := vmConfig(t)
	dir := t.TempDir()
	agent := filepath.Join(dir, "agent")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", agent, "../../cmd/muster-agent")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	program, err := os.ReadFile(agent)
	if err != nil {
		t.Fatal(err)
	}
	in, err := os.Open(filepath.Join(image, "modules.tar"))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	st, err := in.Stat()
	if err != nil {
		t.Fatal(err)
	}
	tree, err := initramfs.FromTar(in, st.Size())
	if err != nil {
		t.Fatal(err)
	}
	kernel, err := os.ReadFile(filepath.Join(image, "vmlinuz"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "kernel"), kernel, 0o444); err != nil {
		t.Fatal(err)
	}
	out, err := os.OpenFile(filepath.Join(dir, "initramfs"), os.O_CREATE|os.O_WRONLY, 0o444)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := initramfs.Build(out, initramfs.Options{Agent: program, Modules: tree}); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	cfg.ImagePath = func(context.Context, muster.ImageID) (string, error) {
		return filepath.Join(image, "root.squashfs"), nil
	}
	cfg.Kernel = func(context.Context, muster.ImageID) (string, string, error) {
		return filepath.Join(dir, "kernel"), filepath.Join(dir, "initramfs"), nil
	}
	cfg.Slices[0].Count, cfg.Slices[0].Memory, cfg.Slices[0].Cores = 1, 1<<30, 2
	p := openConfig(t, cfg)
	net := provider.Network{Cluster: "c-test", Index: 0, Subnet: netip.MustParsePrefix("10.128.0.0/20")}
	if err := p.EnsureNetworks(t.Context(), []provider.Network{net}); err != nil {
		t.Fatal(err)
	}
	ln, err := p.Rack().Listen(t.Context(), netip.AddrPortFrom(network.Gateway(), network.AgentPort))
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	authority, err := pki.OpenAuthority(filepath.Join(dir, "keys"), muster.SystemClock{})
	if err != nil {
		t.Fatal(err)
	}
	w := vmWants(1, &net)
	w[0].Boot.Bootstrap.CA = authority.CertificatePEM()
	w[0].Boot.Image = "sha256:0123456789abcdef"
	began := time.Now()
	if errs := p.Ensure(t.Context(), w); errs != nil {
		t.Fatal(errs)
	}
	c, err := p.Console(t.Context(), w[0].Machine, false)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := c.Read(buf)
			if err != nil {
				return
			}
			t.Logf("%7.1f %s", time.Since(began).Seconds(), buf[:n])
		}
	}()
	timer := time.AfterFunc(20*time.Minute, func() { _ = ln.Close() })
	defer timer.Stop()
	conn, err := ln.Accept()
	if err != nil {
		t.Fatalf("its agent does not come: %v", err)
	}
	defer conn.Close()
	from, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil || from.Addr() != netip.MustParseAddr("10.90.0.2") {
		t.Errorf("%v comes, %v", from, err)
	}
	hello := make([]byte, 5)
	if n, err := conn.Read(hello); err != nil || n < 3 || hello[0] != 22 || hello[1] != 3 { // a TLS record of a handshake
		t.Errorf("it says %x, %v", hello, err)
	}
	t.Logf("its agent comes after %v", time.Since(began))
	if r, err := p.Fence(t.Context(), w[0].Machine); err != nil || !r.Proven {
		t.Errorf("%+v, %v", r, err)
	}
}
