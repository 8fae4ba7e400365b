package wire_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/muster-hpc/muster/wire"
)

func TestConsoleFrames(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	long := bytes.Repeat([]byte("x"), 3*wire.MaxConsoleFrame+7)
	for _, err := range []error{
		wire.WriteConsoleFrame(&b, wire.ConsoleInput, []byte("ls\n")), wire.WriteConsoleSize(&b, 132, 43),
		wire.WriteConsoleFrame(&b, wire.ConsoleInput, nil), wire.WriteConsoleFrame(&b, wire.ConsoleInput, long),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	kind, data, err := wire.ReadConsoleFrame(&b)
	if err != nil || kind != wire.ConsoleInput || string(data) != "ls\n" {
		t.Fatal(kind, data, err)
	}
	kind, data, err = wire.ReadConsoleFrame(&b)
	if c, r := wire.ConsoleColumnsRows(data); err != nil || kind != wire.ConsoleSize || c != 132 || r != 43 {
		t.Fatal(kind, data, err)
	}
	var got []byte
	for {
		_, data, err := wire.ReadConsoleFrame(&b)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, data...)
	}
	if !bytes.Equal(got, long) {
		t.Error(len(got), "bytes came of", len(long))
	}
}

func FuzzConsoleFrame(f *testing.F) {
	f.Add([]byte{'i', 0, 1, 'x'})
	f.Add([]byte{'s', 0, 4, 0, 80, 0, 24})
	f.Add([]byte{'s', 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		for {
			kind, data, err := wire.ReadConsoleFrame(r)
			if err != nil {
				return
			}
			if len(data) > wire.MaxConsoleFrame || kind == wire.ConsoleSize && len(data) != 4 {
				t.Fatal(kind, len(data))
			}
		}
	})
}
