package measure

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Bounds of what nodes say of their conditions.
const (
	maxConditionsLine = 256 << 10
	maxConditions     = 1 << 14
)

// readConditions reads what nodes said of themselves, by name.
func readConditions(path string) (map[string]wire.NodeConditions, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return decodeConditions(f)
}

func decodeConditions(from io.Reader) (map[string]wire.NodeConditions, error) {
	in := bufio.NewReaderSize(from, maxConditionsLine)
	out := map[string]wire.NodeConditions{}
	for {
		line, err := in.ReadSlice('\n')
		if errors.Is(err, io.EOF) && len(line) == 0 {
			return out, nil
		}
		if err != nil {
			return nil, muster.Errorf(muster.EInvalid, "what nodes say of themselves is cut off or too long")
		}
		var c wire.NodeConditions
		if err := json.Unmarshal(line, &c); err != nil {
			return nil, muster.Errorf(muster.EInvalid, "what a node says of itself cannot be read: %v", err)
		}
		if c.Host == "" || len(out) >= maxConditions {
			return nil, muster.Errorf(muster.EInvalid, "a node says something of itself without its name, or too many do")
		}
		out[c.Host] = c
	}
}
