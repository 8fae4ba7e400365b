package local_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider/local"
)

// spoken collects what a console says.
type spoken struct {
	mu   sync.Mutex
	text bytes.Buffer
	over chan struct{}
}

func listen(r io.Reader) *spoken {
	s := &spoken{over: make(chan struct{})}
	go func() {
		defer close(s.over)
		buf := make([]byte, 4096)
		for {
			n, err := r.Read(buf)
			s.mu.Lock()
			s.text.Write(buf[:n])
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return s
}

func (s *spoken) all() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func (s *spoken) await(t *testing.T, want string) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if strings.Contains(s.all(), want) {
			return
		}
	}
	t.Fatalf("no %q in:\n%s", want, s.all())
}

func console(t *testing.T, p *local.Provider, shell bool) (io.ReadWriteCloser, *spoken) {
	t.Helper()
	c, err := p.Console(t.Context(), "local-01", shell)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c, listen(c)
}

// TestConsole reads what a machine prints, over the lives of two servers, and
// sees that it does not outlive the tenant.
func TestConsole(t *testing.T) {
	t.Parallel()
	cfg := config(t, "1,memory=512MiB", withScript(t, `
echo hello; printf 'bad\033[2Jbell\007\n'
while [ ! -e /run/second ]; do sleep 0.1; done
echo again`))
	p := openConfig(t, cfg)
	w := wants(1, nil)
	if errs := p.Ensure(t.Context(), w); errs != nil {
		t.Fatal(errs)
	}
	_, said := console(t, p, false)
	said.await(t, "boot 1 as n01")
	said.await(t, "hello\r\n")
	said.await(t, "bad�[2Jbell�\r\n")
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	p = openConfig(t, cfg)
	_, said = console(t, p, false)
	said.await(t, "hello\r\n") // kept
	typing, shell := console(t, p, true)
	shell.await(t, "# ")
	_, _ = typing.Write([]byte("touch /run/second\n"))
	said.await(t, "again\r\n") // and heard by the next server
	if _, err := p.Fence(t.Context(), "local-01"); err != nil {
		t.Fatal(err)
	}
	said.await(t, "its first process ended")
	if _, err := p.Clean(t.Context(), "local-01"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-said.over:
	case <-time.After(2 * time.Minute):
		t.Error("the console of a clean machine is still open")
	}
	if left, _ := filepath.Glob(filepath.Join(cfg.Dir, "machines", "*.console*")); len(left) > 0 {
		t.Error("kept:", left)
	}
	_, said = console(t, p, false)
	if text := said.all(); strings.Contains(text, "hello") {
		t.Error("the next tenant reads", text)
	}
}

// TestConsoleFlood has a machine print without end.
func TestConsoleFlood(t *testing.T) {
	t.Parallel()
	cfg := config(t, "1,memory=512MiB", withScript(t, `touch /share/out
yes "a line that is as long as lines usually are, more or less, and says nothing" | head -n 60000
touch /share/done`))
	p := openConfig(t, cfg)
	w := wants(1, nil)
	out := share(t, w)
	if errs := p.Ensure(t.Context(), w); errs != nil {
		t.Fatal(errs)
	}
	out(0) // it was not held up
	var size int64
	for _, end := range []string{"", ".old"} {
		if st, err := os.Stat(filepath.Join(cfg.Dir, "machines", "local-01.console"+end)); err == nil {
			size += st.Size()
		}
	}
	if size == 0 || size > 600<<10 {
		t.Errorf("%d bytes are kept", size)
	}
}

// TestShell is root in a machine whose agent and SSH server are dead.
func TestShell(t *testing.T) {
	t.Parallel()
	cfg := config(t, "1,cores=1,memory=512MiB", withScript(t, "true"))
	p := openConfig(t, cfg)
	if _, err := p.Console(t.Context(), "local-01", true); muster.CodeOf(err) != muster.EConflict {
		t.Error("a shell in a machine that is off:", err)
	}
	if errs := p.Ensure(t.Context(), wants(1, nil)); errs != nil {
		t.Fatal(errs)
	}
	c, said := console(t, p, true)
	said.await(t, "# ")
	if r, ok := c.(interface{ Resize(c, r int) error }); !ok || r.Resize(123, 45) != nil {
		t.Error("it has no size")
	}
	begin := time.Now()
	_, _ = c.Write([]byte("stty -echo; until grep -q systemd /proc/1/comm; do sleep 0.1; done; stty size; id -u; hostname; tty; nproc; cat /proc/1/comm; ps -p 1 -o comm=; ls /proc/self/fd | wc -l; pwd; echo done-$((40+2))\n"))
	said.await(t, "done-42")
	t.Log("answer after", time.Since(begin))
	text := said.all()
	for _, want := range []string{"45 123", "\n0\r", "n01", "/dev/pts/", "\n1\r", "systemd", "/root"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
	// It is in the machine's groups, and ends with its connection, with all it
	// has started.
	pids := processes(t, filepath.Join(groupOf(t, cfg.Instance), "local-01"))
	_, _ = c.Write([]byte("trap '' HUP; setsid sleep 1000 & sleep 1000\n"))
	time.Sleep(300 * time.Millisecond)
	if now := processes(t, filepath.Join(groupOf(t, cfg.Instance), "local-01")); len(now) <= len(pids)-1 {
		t.Error("the shell is not in the machine's groups:", pids, now)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	left, _ := filepath.Glob(filepath.Join(groupOf(t, cfg.Instance), "local-01", "muster-console-*"))
	if len(left) > 0 {
		t.Error("left:", left)
	}
	// exit ends the connection.
	c, said = console(t, p, true)
	said.await(t, "# ")
	_, _ = c.Write([]byte("exit\n"))
	select {
	case <-said.over:
	case <-time.After(2 * time.Minute):
		t.Error("exit does not end it")
	}
	// With everything in it stopped there is still a shell.
	for _, pid := range processes(t, filepath.Join(groupOf(t, cfg.Instance), "local-01")) {
		_ = syscall.Kill(pid, syscall.SIGSTOP)
	}
	c, said = console(t, p, true)
	_, _ = c.Write([]byte("echo still-$((1+1))\n"))
	said.await(t, "still-2")
	_ = c.Close()
	local.Freeze(t, p, "local-01")
	time.Sleep(50 * time.Millisecond)
	if _, err := p.Console(t.Context(), "local-01", true); muster.CodeOf(err) != muster.EConflict {
		t.Error("a shell in a frozen machine:", err)
	}
}
