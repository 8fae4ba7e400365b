package api_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/muster-hpc/muster/daemon/controltest"
)

// TestMain lets the test program be another user who knocks on a socket.
func TestMain(m *testing.M) {
	if socket := os.Getenv("MUSTER_TEST_KNOCK"); socket != "" {
		knock(socket, os.Getenv("MUSTER_TEST_TOKEN"))
		return
	}
	os.Exit(m.Run())
}

func knock(socket, token string) {
	h := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socket)
	}}}
	req, _ := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://muster/v1/server", nil)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := h.Do(req)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	fmt.Println(resp.StatusCode, string(body))
}

// The kernel reports who is at the other end: another user of this host is
// refused even where the socket's permissions would let them in, and is not
// the administrator with a token either.
func TestOtherUsersOfThisHost(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root to become another user")
	}
	s := controltest.Start(t, controltest.Options{})
	alice := s.User("alice", "bio")
	// Let the other user through to the socket, and to this program.
	dir, err := os.MkdirTemp("", "knock")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "knock")
	if err := exec.CommandContext(t.Context(), "cp", self, program).Run(); err != nil {
		t.Fatal(err)
	}
	for p, mode := range map[string]os.FileMode{dir: 0o755, program: 0o755, s.Socket: 0o777, s.Dir: 0o755, filepath.Dir(s.Dir): 0o755} {
		if err := os.Chmod(p, mode); err != nil {
			t.Fatal(err)
		}
	}
	run := func(uid uint32, token string) string {
		cmd := exec.CommandContext(t.Context(), program)
		cmd.Env = []string{"MUSTER_TEST_KNOCK=" + s.Socket, "MUSTER_TEST_TOKEN=" + token}
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v %s", err, out)
		}
		return string(out)
	}
	if got := run(65534, ""); !strings.HasPrefix(got, "403 ") || !strings.Contains(got, "forbidden") {
		t.Errorf("another user: %s", got)
	}
	if got := run(65534, alice); !strings.HasPrefix(got, "200 ") || !strings.Contains(got, `"you":"alice"`) {
		t.Errorf("another user with a token: %s", got)
	}
	if got := run(0, ""); !strings.HasPrefix(got, "200 ") || !strings.Contains(got, `"you":"root"`) {
		t.Errorf("root: %s", got)
	}
}
