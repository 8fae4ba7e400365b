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
