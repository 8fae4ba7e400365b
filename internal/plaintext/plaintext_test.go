package plaintext

import "testing"

func TestCount(t *testing.T) {
	t.Parallel()
	for want, got := range map[string]string{
		"0 nodes": Count(0, "node"), "1 node": Count(1, "node"), "2 nodes": Count(2, "node"),
		"1 launch": Count(1, "launch"), "3 launches": Count(3, "launch"), "2 classes": Count(2, "class"), "2 boxes": Count(2, "box"), "2 crashes": Count(2, "crash"),
		"-1 machines": Count(-1, "machine"),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestBytes(t *testing.T) {
	t.Parallel()
	for want, got := range map[string]string{
		"-": Bytes(-1), "0 B": Bytes(0), "1023 B": Bytes(1023), "2 MiB": Bytes(2 << 20), "1.5 GiB": Bytes(3 << 29), "100 GiB": Bytes(100<<30 - 1), "8 EiB": Bytes(1<<63 - 1),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
