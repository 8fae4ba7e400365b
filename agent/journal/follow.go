package journal

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"github.com/muster-hpc/muster/wire"
)

// Options of Follow.
type Options struct {
	Program string // "" is journalctl
	Log     *slog.Logger
	// Rate is how many lines a second are taken at most; 0: 2000. Above it the
	// follower waits, and journald keeps the rest for as long as it can.
	Rate int
	// Again is the first pause before the program is started again; 0: 1 s.
	Again time.Duration
}

const (
	// maxEntry bounds one line of JSON: longer ones are skipped.
	maxEntry   = 128 << 10
	againMost  = time.Minute
	ranLongest = 10 * time.Second // a program that ran so long did not just fail
)

// Follow calls put for every entry after cursor, in order, from one goroutine,
// until ctx ends. It starts the program again when it ends by itself. It
// returns at once when the node has no such program.
func Follow(ctx context.Context, o Options, cursor string, put func(line wire.JournalLine, cursor string)) {
	if o.Program == "" {
		o.Program = "journalctl"
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Rate <= 0 {
		o.Rate = 2000
	}
	if o.Again <= 0 {
		o.Again = time.Second
	}
	pause := o.Again
	for ctx.Err() == nil {
		began := time.Now()
		next, err := once(ctx, o, cursor, put)
		if errors.Is(err, exec.ErrNotFound) {
			o.Log.Warn("journal not collected: image has no journalctl")
			return
		}
		if ctx.Err() != nil {
			return
		}
		switch {
		case next != cursor || time.Since(began) > ranLongest:
			pause = o.Again
		case cursor != "" && pause > 4*o.Again:
			// Perhaps the cursor is of a journal that is gone.
			next = ""
		}
		cursor = next
		o.Log.Info("journalctl exited, restarting", "pause", pause, "error", err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, againMost)
	}
}

// once runs the program until it ends and returns the last cursor.
func once(ctx context.Context, o Options, cursor string, put func(wire.JournalLine, string)) (string, error) {
	args := []string{
		"--follow", "--no-tail", "--boot", "--quiet", "--output=json",
		"--output-fields=MESSAGE,PRIORITY,_SYSTEMD_UNIT,UNIT,SYSLOG_IDENTIFIER",
	}
	if cursor != "" {
		args = append(args, "--after-cursor="+cursor)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := exec.CommandContext(ctx, o.Program, args...)
	// An agent that is killed leaves no reader behind. The signal comes when
	// the thread that started the program ends, so the thread is kept.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		return cursor, err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		return cursor, err
	}
	last := read(ctx, out, o.Rate, cursor, put)
	cancel()
	return last, cmd.Wait()
}

// read takes lines until the end of r or of ctx.
func read(ctx context.Context, r io.Reader, rate int, cursor string, put func(wire.JournalLine, string)) string {
	in := bufio.NewReaderSize(r, 4<<10)
	window, taken := time.Now(), 0
	var long []byte
	for ctx.Err() == nil {
		part, err := in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			if len(long) <= maxEntry {
				long = append(long, part...)
			}
			continue
		}
		line := part
		if len(long) > 0 {
			long = append(long, part...)
			line, long = long, nil
		}
		if len(line) > 0 && len(line) <= maxEntry {
			if l, at, ok := Parse(line); ok {
				put(l, at)
				cursor = at
			}
		}
		if err != nil {
			return cursor
		}
		if taken++; taken >= rate {
			select {
			case <-ctx.Done():
			case <-time.After(time.Until(window.Add(time.Second))):
			}
			window, taken = time.Now(), 0
		}
	}
	return cursor
}
