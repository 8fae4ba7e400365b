package boot

import (
	"bufio"
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// host answers a channel by a script, and then no more.
func host(t *testing.T, answers ...string) *Channel {
	t.Helper()
	ours, theirs := net.Pipe()
	t.Cleanup(func() { _ = ours.Close(); _ = theirs.Close() })
	go func() {
		in := bufio.NewScanner(theirs)
		for in.Scan() {
			if in.Text() != "task" {
				continue
			}
			if len(answers) == 0 {
				continue
			}
			if _, err := io.WriteString(theirs, answers[0]); err != nil {
				return
			}
			answers = answers[1:]
		}
	}()
	return newChannel(ours)
}

// A machine hears its task by the channel, whatever noise is before it, and what it cannot carry out is refused.
func TestChannel(t *testing.T) {
	t.Parallel()
	c := host(t, "\r\n\n"+`{"protocol":1,"now":"2026-11-20T10:00:00Z","task":{"kind":"off"}}`+"\r\n", `{"protocol":1,"wait":{"reason":"this machine had its task","next_seconds":60}}`+"\n", "{\"protocol\":1,\n")
	r, err := c.CheckIn(t.Context(), wire.BootCheckIn{})
	if err != nil || r.Task == nil || r.Task.Kind != wire.BootOff || r.Now.Year() != 2026 {
		t.Fatalf("%+v, %v", r, err)
	}
	if r, err = c.CheckIn(t.Context(), wire.BootCheckIn{}); err != nil || r.Wait == nil {
		t.Fatalf("%+v, %v", r, err)
	}
	if _, err = c.CheckIn(t.Context(), wire.BootCheckIn{}); muster.CodeOf(err) != muster.EInvalid {
		t.Errorf("half a line: %v", err)
	}
}

// A host that does not answer is no reason to wait for ever, and an answer that comes late is nobody's.
func TestChannelSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := host(t)
		began := time.Now()
		if _, err := c.CheckIn(t.Context(), wire.BootCheckIn{}); muster.CodeOf(err) != muster.EUnavailable || time.Since(began) != answerTime {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		if _, err := c.CheckIn(t.Context(), wire.BootCheckIn{}); muster.CodeOf(err) != muster.EUnavailable {
			t.Error(err)
		}
	})
}

func FuzzReply(f *testing.F) {
	f.Add("\r\n{}\n")
	f.Fuzz(func(t *testing.T, s string) {
		line, err := readReply(bufio.NewReader(strings.NewReader(s)))
		if err == nil && (len(line) == 0 || strings.ContainsAny(string(line), "\r\n")) {
			t.Errorf("%q", line)
		}
	})
}

// A machine that asks its host needs no address before it has its task, and its image is on a disk: it is not told that
// its memory is too small for that.
func TestByChannel(t *testing.T) {
	t.Parallel()
	s, err := ParseCmdline("console=ttyS0 muster.channel=ttyS1 modprobe.blacklist=x")
	if err != nil || s.Channel != "ttyS1" || s.Server != "" || len(s.Blacklist) != 1 {
		t.Errorf("%+v, %v", s, err)
	}
	for _, bad := range []string{"muster.channel=../sda", "muster.channel=tty", "muster.channel=tty/../x", "muster.channel=ttyS1 muster.channel=ttyS2", "muster.channel="} {
		if _, err := ParseCmdline(bad); muster.CodeOf(err) != muster.EInvalid {
			t.Errorf("%s: %v", bad, err)
		}
	}
	f := &wire.BootFiles{Root: wire.BootFile{Size: 8 << 30}, Disk: "root"}
	if err := enough(f, 512<<20); err != nil {
		t.Error(err)
	}
	f.Disk = ""
	if err := enough(f, 512<<20); err == nil {
		t.Error("an image of 8 GiB fits into half a GiB")
	}
}

// A disk is known by its serial number alone, and may come late.
func TestFindDisk(t *testing.T) {
	root := t.TempDir()
	put := func(name, serial string) {
		t.Helper()
		dir := filepath.Join(root, "sys/block", name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "serial"), []byte(serial+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("vda", "scratch")
	synctest.Test(t, func(t *testing.T) {
		time.AfterFunc(5*time.Second, func() { put("vdb", "root") })
		at, err := findDisk(t.Context(), root, "root", muster.SystemClock{})
		if err != nil || at != filepath.Join(root, "dev/vdb") {
			t.Errorf("%s, %v", at, err)
		}
		if _, err := findDisk(t.Context(), root, "roo", muster.SystemClock{}); muster.CodeOf(err) != muster.EUnavailable {
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := findDisk(ctx, root, "roo", muster.SystemClock{}); err == nil {
			t.Error("it waits for ever")
		}
	})
}
