package inherit

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestSeal(t *testing.T) {
	fd, err := unix.Open("/etc/passwd", unix.O_RDONLY, 0) // as a careless library opens it
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	list := func() string {
		out, err := exec.Command("ls", "/proc/self/fd").Output()
		if err != nil {
			t.Fatal(err)
		}
		return " " + strings.Join(strings.Fields(string(out)), " ") + " "
	}
	name := " " + strconv.Itoa(fd) + " "
	if got := list(); !strings.Contains(got, name) {
		t.Fatalf("a child has %s: the test opened nothing that is inherited", got)
	}
	Seal()
	if got := list(); strings.Contains(got, name) {
		t.Errorf("a child has %s", got)
	}
	if _, err := os.Stat("/proc/self/fd/" + strconv.Itoa(fd)); err != nil {
		t.Errorf("the program itself lost it: %v", err)
	}
}
