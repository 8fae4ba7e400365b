package hibernate

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// A machine that goes on ends its connections to the servers of its volumes, and no others.
func TestEndConnections(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("ss"); err != nil || os.Geteuid() != 0 {
		t.Skip("ending connections needs root, and ss")
	}
	listen := func() (port int) {
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				t.Cleanup(func() { _ = c.Close() })
			}
		}()
		return l.Addr().(*net.TCPAddr).Port
	}
	dial := func(port int) net.Conn {
		c, err := net.Dial("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	volumes, other := listen(), listen()
	mounted, also := dial(volumes), dial(other)
	root := t.TempDir()
	mounts := "proc /proc proc rw 0 0\n" +
		fmt.Sprintf("127.0.0.1:/home /home nfs4 rw,vers=4.2,port=%d,clientaddr=127.0.0.1,addr=127.0.0.1 0 0\n", volumes) +
		fmt.Sprintf("127.0.0.1:/data /data nfs4 rw,vers=4.2,port=%d,clientaddr=127.0.0.1,addr=127.0.0.1 0 0\n", volumes)
	if err := os.MkdirAll(filepath.Join(root, "proc"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "proc/mounts"), []byte(mounts), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := (Kernel{Root: root}).EndConnections(t.Context()); err != nil {
		t.Fatal(err)
	}
	ended := func(c net.Conn, wait time.Duration) bool {
		_ = c.SetReadDeadline(time.Now().Add(wait))
		_, err := c.Read(make([]byte, 1))
		return !errors.Is(err, os.ErrDeadlineExceeded)
	}
	if !ended(mounted, time.Minute) {
		t.Error("the connection to the server of volumes goes on")
	}
	if ended(also, 100*time.Millisecond) {
		t.Error("another connection was ended")
	}
}

func TestNFSServers(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "proc"), 0o755); err != nil {
		t.Fatal(err)
	}
	mounts := `tmpfs /tmp tmpfs rw,addr=10.0.0.9 0 0
10.77.0.1:/v-a /home nfs4 rw,vers=4.2,hard,clientaddr=10.77.0.16,local_lock=none,addr=10.77.0.1 0 0
10.77.0.1:/v-b /data nfs4 rw,vers=4.2,hard,port=20490,clientaddr=10.77.0.16,addr=10.77.0.1 0 0
10.77.0.1:/v-c /more nfs rw,vers=4.2,port=20490,addr=10.77.0.1 0 0
[fd00::1]:/v-d /six nfs4 rw,addr=fd00::1 0 0
x:/v-e /bad nfs4 rw,addr=x,port=99999 0 0
broken
`
	if err := os.WriteFile(filepath.Join(root, "proc/mounts"), []byte(mounts), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(Kernel{Root: root}.nfsServers()); got != "[10.77.0.1:2049 10.77.0.1:20490 [fd00::1]:2049]" {
		t.Error(got)
	}
}
