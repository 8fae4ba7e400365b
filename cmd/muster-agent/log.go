package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
)

// journalHandler writes one line for each record, with the priority in front
// as journald reads it, and without the time, which journald knows.
type journalHandler struct {
	mu    *sync.Mutex
	out   io.Writer
	attrs string
}

func newLog(out io.Writer) *slog.Logger {
	return slog.New(journalHandler{mu: new(sync.Mutex), out: out})
}

func (h journalHandler) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelInfo }

func (h journalHandler) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	fmt.Fprintf(&b, "<%d>%s%s", priority(r.Level), oneLine(r.Message), h.attrs)
	r.Attrs(func(a slog.Attr) bool {
		write(&b, a)
		return true
	})
	b.WriteByte('\n')
	h.mu.Lock()
	defer h.mu.Unlock()
	_, err := io.WriteString(h.out, b.String())
	return err
}

func (h journalHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	var b strings.Builder
	for _, a := range attrs {
		write(&b, a)
	}
	h.attrs += b.String()
	return h
}

// WithGroup ignores groups: names of attributes are unique here.
func (h journalHandler) WithGroup(string) slog.Handler { return h }

func write(b *strings.Builder, a slog.Attr) {
	if v := a.Value.Resolve().Any(); v != nil {
		fmt.Fprintf(b, " %s=%q", a.Key, fmt.Sprint(v))
	}
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// priority is the syslog priority of a level.
func priority(l slog.Level) int {
	switch {
	case l >= slog.LevelError:
		return 3
	case l >= slog.LevelWarn:
		return 4
	default:
		return 6
	}
}
