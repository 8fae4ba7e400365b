package metal

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Each boot has a secret of its own; its tags are those that a machine makes of the file. Of a
// file that is not what it was, there are none.
func TestTags(t *testing.T) {
	t.Parallel()
	const id = muster.ImageID("sha256:00")
	b := make([]byte, 2*pieceSize+100)
	_, _ = rand.NewChaCha8([32]byte{}).Read(b)
	path := filepath.Join(t.TempDir(), "root")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	p := newPieces()
	one, tags, err := p.tag(t.Context(), id, path)
	if err != nil || len(tags) != 3 {
		t.Fatalf("%d tags: %v", len(tags), err)
	}
	of, err := wire.BootTag(one)
	if err != nil {
		t.Fatal(err)
	}
	for i, tag := range tags {
		if !bytes.Equal(tag, of(i, b[i*pieceSize:min((i+1)*pieceSize, len(b))])) {
			t.Errorf("the tag of piece %d is not its machine's", i)
		}
	}
	two, _, err := p.tag(t.Context(), id, path)
	if err != nil || bytes.Equal(one, two) {
		t.Errorf("the second boot has the secret of the first: %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, _, err := p.tag(ended, id, path); err == nil {
		t.Error("nobody asks any more, and it goes on")
	}
	for name, changed := range map[string][]byte{
		"a byte":     append(bytes.Clone(b[:len(b)-1]), b[len(b)-1]^1),
		"the length": b[:len(b)-1],
	} {
		if err := os.WriteFile(path, changed, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := p.tag(t.Context(), id, path); muster.CodeOf(err) != muster.ECorrupt {
			t.Errorf("%s changed: %v", name, err)
		}
	}
}
