package cli

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// A shell reads the quoted words as they were.
func TestShellReadsWordsBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.StringOfN(rapid.OneOf(rapid.RuneFrom([]rune("ab '\"$`\\*?[](){}|&;<>#~!=%\n\té-")), rapid.Rune()), 0, 20, -1), 1, 5).Draw(t, "words")
		for _, w := range words {
			if strings.ContainsRune(w, 0) {
				t.Skip("no argument holds a zero byte")
			}
		}
		out, err := exec.Command("/bin/sh", "-c", "printf '%s\\0' "+quoteAll(words)).Output()
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
		if !slices.Equal(got, words) {
			t.Fatalf("%q became %q", words, got)
		}
	})
}

func TestSplitRsh(t *testing.T) {
	t.Parallel()
	for line, want := range map[string][4]string{
		"cfd rsync --server . x":                         {"", "", "cfd", "rsync --server . x"},
		"-l alice cfd.n02 cmd":                           {"", "alice", "cfd.n02", "cmd"},
		"alice@cfd cmd":                                  {"", "alice", "cfd", "cmd"},
		"-x -oForwardAgent=no -o BatchMode=yes -- cfd c": {"-x -oForwardAgent=no -o BatchMode=yes", "", "cfd", "c"},
		"-x -s -- cfd sftp":                              {"-x -s", "", "cfd", "sftp"},
		"":                                               {},
	} {
		options, user, host, command := splitRsh(strings.Fields(line))
		got := [4]string{strings.Join(options, " "), user, host, strings.Join(command, " ")}
		if got != want {
			t.Errorf("%q gives %q, want %q", line, got, want)
		}
	}
}

func TestSize(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1 KiB", 1536: "1.5 KiB", 8 << 30: "8 GiB", -1: "-"} {
		if got := size(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}
