package provider_test

import (
	"io"
	"strings"
	"testing"

	"github.com/muster-hpc/muster/provider"
)

func TestPrinted(t *testing.T) {
	t.Parallel()
	var p provider.ConsoleBuffer
	got := make(chan string)
	go func() {
		b, err := io.ReadAll(&p)
		if err != nil {
			t.Error(err)
		}
		got <- string(b)
	}()
	want := ""
	for _, text := range []string{"one\r\n", "", "two\r\n"} {
		p.Print(text)
		want += text
	}
	if p.Ended() {
		t.Error("it ended by itself")
	}
	p.End()
	if text := <-got; text != want || !p.Ended() {
		t.Errorf("read %q", text)
	}
}

// A reader that is far behind misses something, and is told.
func TestPrintedIsBounded(t *testing.T) {
	t.Parallel()
	var p provider.ConsoleBuffer
	line := strings.Repeat("x", 1023) + "\n"
	for range 4096 {
		p.Print(line)
	}
	p.End()
	b, err := io.ReadAll(&p)
	if err != nil || len(b) > 2<<20 || strings.Count(string(b), "more came than could be read") != 1 {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}
