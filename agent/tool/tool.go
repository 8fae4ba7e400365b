package tool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// Most is how much a program may print.
const Most = 8 << 20

// mostWords of what it complained of are told.
const mostWords = 300

// Run runs a program until it ends, and returns what it printed, also when it
// failed. Files are its descriptors from 3 on. It ends with ctx, and with this
// process, however that ends.
func Run(ctx context.Context, files []*os.File, name string, args ...string) ([]byte, error) {
	// The kernel takes the thread that started a program for its parent.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.ExtraFiles = files
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = time.Second
	var out, complaint bounded
	out.left, complaint.left = Most, 64<<10
	cmd.Stdout, cmd.Stderr = &out, &complaint
	err := cmd.Run()
	switch {
	case err != nil && ctx.Err() != nil:
		err = fmt.Errorf("%s was ended: %w", name, context.Cause(ctx))
	case err != nil:
		words := strings.Join(strings.Fields(strings.ToValidUTF8(complaint.kept.String(), "")), " ")
		if len(words) > mostWords {
			words = strings.ToValidUTF8(words[:mostWords], "") + "..."
		}
		if words == "" {
			words = err.Error()
		}
		err = fmt.Errorf("%s failed: %s", name, words)
	case out.cut:
		err = fmt.Errorf("%s printed more than %d bytes", name, Most)
	}
	return out.kept.Bytes(), err
}

// Version is the first line that a program says of its version; "" if it is not
// there.
func Version(ctx context.Context, name string) string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	out, err := Run(ctx, nil, name, "--version")
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(out), "\n")
	line, _, _ = strings.Cut(line, " (")
	const enough = 64
	return strings.ToValidUTF8(strings.TrimSpace(line[:min(len(line), enough)]), "")
}

// There reports whether a program is installed.
func There(name string) bool {
	_, err := exec.LookPath(name)
	return err == nil || errors.Is(err, exec.ErrDot)
}

// bounded keeps the beginning. The buffer is not embedded: io.Copy would fill it past
// Write.
type bounded struct {
	kept bytes.Buffer
	left int
	cut  bool
}

func (b *bounded) Write(p []byte) (int, error) {
	n := len(p)
	if n > b.left {
		p, b.cut = p[:b.left], true
	}
	b.left -= len(p)
	b.kept.Write(p)
	return n, nil
}
