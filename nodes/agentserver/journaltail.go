package agentserver

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"slices"

	"github.com/muster-hpc/muster/wire"
)

// tailChunk is how much of a journal is read at once, from its end.
const tailChunk = 64 << 10

// tailJournal reads the newest lines that are wanted from files, newest file
// first, without reading more than it takes. A torn line is left out.
func tailJournal(paths []string, q wire.LogQuery) ([]wire.JournalLine, error) {
	var out []wire.JournalLine // newest first
	for _, path := range paths {
		if len(out) >= q.Lines {
			break
		}
		if err := tailFile(path, q, &out); err != nil && !os.IsNotExist(err) {
			return nil, err
		}
	}
	slices.Reverse(out)
	return out, nil
}

func tailFile(path string, q wire.LogQuery, out *[]wire.JournalLine) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	var rest []byte // the beginning of what was read: it may be half a line
	for at := info.Size(); at > 0 && len(*out) < q.Lines; {
		n := min(at, tailChunk)
		at -= n
		chunk := make([]byte, n, n+int64(len(rest)))
		if _, err := f.ReadAt(chunk, at); err != nil && err != io.EOF {
			return err
		}
		chunk = append(chunk, rest...)
		for len(*out) < q.Lines {
			i := bytes.LastIndexByte(bytes.TrimRight(chunk, "\n"), '\n')
			if i < 0 && at > 0 {
				break
			}
			line := chunk[i+1:]
			chunk = chunk[:max(i, 0)]
			var l wire.JournalLine
			if json.Unmarshal(line, &l) == nil && q.Matches(l) {
				*out = append(*out, l)
			}
			if i < 0 {
				break
			}
		}
		if rest = chunk; len(rest) > journalBytes {
			return nil // no line is so long
		}
	}
	return nil
}
