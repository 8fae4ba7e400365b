package local_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A root shell has its terminal and nothing else of the server's: neither what the
// server left open, nor the namespaces by which it came in.
func TestAShellInheritsNothing(t *testing.T) {
	t.Parallel()
	p := openConfig(t, config(t, "1,memory=512MiB", withScript(t, "while true; do sleep 1; done")))
	if errs := p.Ensure(t.Context(), wants(1, nil)); errs != nil {
		t.Fatal(errs)
	}
	// As a library does that knows nothing of processes.
	fd, err := unix.Open(os.Args[0], unix.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	high, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD, 40) // above what the way in uses itself
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(high)
	typing, shell := console(t, p, true)
	shell.await(t, "# ")
	_, _ = typing.Write([]byte("ls -l /proc/$$/fd; echo THE''END\n"))
	shell.await(t, "THEEND")
	list := regexp.MustCompile(`(\d+) -> (\S+)`).FindAllStringSubmatch(shell.all(), -1)
	for _, m := range list {
		if to := m[2]; !strings.Contains(to, "/pts/") && !strings.Contains(to, "/console") && !strings.Contains(to, "/tty") {
			t.Errorf("descriptor %s is %s", m[1], to)
		}
	}
	if len(list) < 3 {
		t.Errorf("not listed: %q", shell.all())
	}
}
