package nfs

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
)

// What ganesha writes when it is done, and when it could not do something.
const (
	readyLine  = "NFS SERVER INITIALIZED"
	rereadLine = "Reread exports complete"
	failedLine = "Could not create export for ("
	brokenLine = "Export block error"
)

const (
	patience = 30 * time.Second      // for ganesha to say that it is done
	every    = 20 * time.Millisecond // how often its log is looked at
	maxLog   = 16 << 20              // bytes; then a new one is begun
)

// await reads what ganesha writes to its log, from a place on, until it is done or
// has ended. failed are the names of exports that it could not make.
func await(ctx context.Context, clock muster.Clock, log string, from int64, done string, alive func() bool) (failed []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		running := alive() // before the log is read: the last words count
		text, err := tail(log, from)
		if err != nil {
			return nil, err
		}
		failed, broken, ok := judge(text, done)
		switch {
		case broken:
			return failed, fmt.Errorf("ganesha does not understand its exports; see %s", log)
		case ok:
			return failed, nil
		case !running:
			return failed, fmt.Errorf("ganesha has ended; see %s", log)
		}
		select {
		case <-ctx.Done():
			return failed, fmt.Errorf("ganesha says nothing; see %s: %w", log, ctx.Err())
		case <-clock.After(every):
		}
	}
}

// judge reads whole lines of ganesha's log.
func judge(text, done string) (failed []string, broken, ok bool) {
	for line := range strings.Lines(text) {
		if !strings.HasSuffix(line, "\n") {
			break
		}
		if _, rest, found := strings.Cut(line, failedLine); found {
			name, _, _ := strings.Cut(rest, ")")
			failed = append(failed, strings.TrimPrefix(name, "/"))
		}
		broken = broken || strings.Contains(line, brokenLine)
		ok = ok || strings.Contains(line, done)
	}
	return failed, broken, ok
}

// size of a file; 0 where there is none.
func size(path string) int64 {
	st, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return st.Size()
}

func tail(path string, from int64) (string, error) {
	f, err := os.Open(path)
	if os.IsNotExist(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.NewSectionReader(f, from, maxLog))
	return string(b), err
}

// rotate begins a new log when there is much in the old one. Ganesha opens it for
// each line.
func rotate(path string) {
	if size(path) > maxLog/2 {
		_ = os.Rename(path, path+".old")
	}
}
