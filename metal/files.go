package metal

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/atomicfile"
	"github.com/muster-hpc/muster/wire"
)

// fileKeys makes the key with which one boot may fetch one image: what it is made of
// outlives a restart, so that a machine that fetches goes on.
type fileKeys []byte

func openFileKeys(path string) (fileKeys, error) {
	b, err := os.ReadFile(path)
	if err == nil && len(b) == sha256.Size {
		return b, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	b = make([]byte, sha256.Size)
	_, _ = rand.Read(b) // never fails
	return b, atomicfile.Replace(path, b, 0o600)
}

func (k fileKeys) of(number string, image muster.ImageID) string {
	m := hmac.New(sha256.New, k)
	m.Write([]byte(number + "\x00" + string(image)))
	return hex.EncodeToString(m.Sum(nil))
}

// filesAtOnce bounds transfers: each holds a connection and a buffer.
const filesAtOnce = 1024

// Files serves images to the boots that were told of them: below wire.BootFilePath is
// the number of a boot and the digest of its image, and the key that the order holds is
// a bearer token. Whoever has another key, or whose boot is over, finds nothing.
func (p *Provider) Files() http.Handler {
	slots := make(chan struct{}, filesAtOnce)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		number, digest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, wire.BootFilePath), "/")
		key, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		image, ok := p.boots.fetching(number)
		want := p.keys.of(number, image)
		if !ok || !bearer || digest != image.Hex() || subtle.ConstantTimeCompare([]byte(key), []byte(want)) != 1 {
			http.NotFound(w, r)
			return
		}
		p.boots.fetched(number)
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
		default:
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		k, err := p.o.Kernels.Of(r.Context(), image)
		if err != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		root, _ := k.Manifest.File(muster.FileRoot)
		f, err := os.Open(filepath.Join(k.Dir, root.Name))
		if err != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		defer f.Close()
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Cache-Control", "no-store")
		http.ServeContent(w, r, "", time.Time{}, f)
	})
}
