package image

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	muster "github.com/muster-hpc/muster"
)

// Contains reports whether the root file system of an image has a file, by its path from the
// root without a slash before it. known is false where nobody can say: the image has no such file
// system here, or the host has no unsquashfs. What one has never changes, and is remembered.
func (s *Store) Contains(id muster.ImageID, path string) (there, known bool) {
	key := inside{id, path}
	s.mu.Lock()
	there, known = s.contents[key]
	s.mu.Unlock()
	if known {
		return there, true
	}
	m, err := s.Show(id)
	if err != nil {
		return false, false
	}
	root, ok := m.File(muster.FileRoot)
	if !ok {
		return false, false
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, s.tools.unsquashfs, "-lc", "-d", "", filepath.Join(s.Path(id), root.Name), path).Output()
	if err != nil {
		return false, false
	}
	for line := range strings.Lines(string(out)) {
		there = there || strings.TrimPrefix(strings.TrimSpace(line), "/") == path
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.contents == nil || len(s.contents) >= mostContents {
		s.contents = map[inside]bool{}
	}
	s.contents[key] = there
	return there, true
}

// mostContents are remembered.
const mostContents = 10_000

// inside is a path in an image.
type inside struct {
	id   muster.ImageID
	path string
}
