package local

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Kernels before 6.2 cannot map the owners of a squashfs. There an image is
// unpacked once to a directory of the host's file system, which they can map.

// treePath is where an image is unpacked to.
func treePath(dir, image string) string {
	sum := sha256.Sum256([]byte(image))
	return filepath.Join(dir, "tree-"+hex.EncodeToString(sum[:8]))
}

// unpack unpacks an image below dir, unless it is there.
func unpack(ctx context.Context, dir, image string) (string, error) {
	at := treePath(dir, image)
	if _, err := os.Stat(at); err == nil {
		return at, nil
	}
	tmp, err := os.MkdirTemp(dir, ".tree-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	cmd := exec.CommandContext(ctx, "unsquashfs", "-no-progress", "-quiet", "-dest", filepath.Join(tmp, "root"), image)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("unpack %s: %w: %s", filepath.Base(image), err, strings.TrimSpace(string(out)))
	}
	if err := os.Rename(filepath.Join(tmp, "root"), at); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	return at, nil
}

// dropTrees removes unpacked images that are not in use.
func dropTrees(dir string, used map[string]bool) error {
	found, err := filepath.Glob(filepath.Join(dir, "tree-*"))
	if err != nil || len(found) == 0 {
		return err
	}
	keep := map[string]bool{}
	for image := range used {
		keep[treePath(dir, image)] = true
	}
	var errs []error
	for _, f := range found {
		if !keep[f] {
			errs = append(errs, os.RemoveAll(f))
		}
	}
	return errors.Join(errs...)
}
