package qmp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"
)

// pretend answers like QEMU's monitor.
func pretend(t *testing.T, conn net.Conn, answer func(command, id string) string) {
	t.Helper()
	go func() {
		in := bufio.NewScanner(conn)
		fmt.Fprintln(conn, `{"QMP": {"version": {}, "capabilities": []}}`)
		for in.Scan() {
			var c struct{ Execute, ID string }
			if json.Unmarshal(in.Bytes(), &c) != nil {
				return
			}
			fmt.Fprintln(conn, answer(c.Execute, c.ID))
		}
	}()
}

func TestMonitor(t *testing.T) {
	t.Parallel()
	ours, theirs := net.Pipe()
	defer theirs.Close()
	pretend(t, theirs, func(command, id string) string {
		switch command {
		case "broken":
			return `{"error": {"class": "GenericError", "desc": "it cannot"}, "id": "` + id + `"}`
		case "late":
			return `{"return": 1, "id": "another"}`
		case "noisy":
			return `{"event": "RESET", "data": {"guest": true}}` + "\n" + `{"return": {"a": 1}, "id": "` + id + `"}`
		}
		return `{"return": {}, "id": "` + id + `"}`
	})
	events := make(chan Event, 4)
	m, err := NewMonitor(t.Context(), ours, func(e Event) { events <- e })
	if err != nil {
		t.Fatal(err)
	}
	if got, err := m.Do(t.Context(), "noisy", nil); err != nil || string(got) != `{"a": 1}` {
		t.Fatalf("%s, %v", got, err)
	}
	if e := <-events; e.Name != EventReset || !strings.Contains(string(e.Data), "true") {
		t.Fatalf("%+v", e)
	}
	if _, err := m.Do(t.Context(), "broken", nil); err == nil || !strings.Contains(err.Error(), "it cannot") {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := m.Do(ctx, "late", nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("an answer to something else counts: %v", err)
	}
	if _, err := m.Do(t.Context(), "cont", nil); err != nil {
		t.Fatalf("after a late answer: %v", err)
	}
	theirs.Close()
	if _, err := m.Do(t.Context(), "cont", nil); err == nil {
		t.Fatal("a closed monitor answers")
	}
}

func FuzzMessage(f *testing.F) {
	f.Add([]byte(`{"event": "RESET", "data": {"guest": true}, "timestamp": {"seconds": 1}}`))
	f.Add([]byte(`{"error": {"class": "x", "desc": "y"}, "id": "3"}`))
	f.Fuzz(func(_ *testing.T, line []byte) { _, _ = parseMessage(line) })
}
