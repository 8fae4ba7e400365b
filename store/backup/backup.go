// Package backup writes what a site knows into one file, and reads it back: a list of
// contents with digests, then the files, sealed by a passphrase where one is given. What
// is read is believed only as a whole: every file is there, once, and is what the list
// says.
package backup

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"filippo.io/age"
	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/document"
)

const (
	contentsName = "contents.json"
	mostContents = 4 << 20
	mostFiles    = 100_000
	blockSize    = 512 // of an archive
	// MostBytes is how much a backup may hold at most when it is read.
	MostBytes = 1 << 40
)

// Contents is the list at the beginning of a backup.
type Contents struct {
	Version  string    `json:"version"` // of the program that wrote it
	Instance string    `json:"instance"`
	Epoch    int64     `json:"epoch"`
	Made     time.Time `json:"made"`
	Files    []File    `json:"files"`
}

const contentsDoc document.Kind[Contents] = "backup/1"

// File is one file of a backup.
type File struct {
	Name   string `json:"name"` // with /, below the state directory
	Size   int64  `json:"size_bytes"`
	SHA256 string `json:"sha256"`
}

// Write writes the files below dir that are named, with their contents first. Without a
// passphrase nothing in it is sealed.
func Write(w io.Writer, passphrase string, c Contents, dir string, names []string) error {
	sealed, err := seal(w, passphrase)
	if err != nil {
		return err
	}
	c.Files = nil
	for _, n := range names {
		size, sum, err := digest(filepath.Join(dir, filepath.FromSlash(n)))
		if err != nil {
			return err
		}
		c.Files = append(c.Files, File{n, size, sum})
	}
	t := tar.NewWriter(sealed)
	list, err := contentsDoc.Encode(&c)
	if err != nil {
		return err
	}
	if err := add(t, contentsName, int64(len(list)), bytes.NewReader(list)); err != nil {
		return err
	}
	for _, f := range c.Files {
		in, err := os.Open(filepath.Join(dir, filepath.FromSlash(f.Name)))
		if err != nil {
			return err
		}
		err = add(t, f.Name, f.Size, in)
		if err = errors.Join(err, in.Close()); err != nil {
			return err
		}
	}
	return errors.Join(t.Close(), sealed.Close())
}

func add(t *tar.Writer, name string, size int64, from io.Reader) error {
	if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o600}); err != nil {
		return err
	}
	n, err := io.Copy(t, io.LimitReader(from, size))
	if err == nil && n != size {
		err = fmt.Errorf("%s became shorter while it was copied", name)
	}
	return err
}

func digest(path string) (int64, string, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, "", err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, f)
	return n, hex.EncodeToString(h.Sum(nil)), err
}

type plain struct{ io.Writer }

func (plain) Close() error { return nil }

func seal(w io.Writer, passphrase string) (io.WriteCloser, error) {
	if passphrase == "" {
		return plain{w}, nil
	}
	r, err := age.NewScryptRecipient(passphrase)
	if err != nil {
		return nil, err
	}
	return age.Encrypt(w, r)
}

// sealedMark is how a sealed file begins (age-encryption.org/v1).
const sealedMark = "age-encryption.org/v1\n"

// Read reads a backup into dir, which must be there and empty, or only looks whether it
// is whole when dir is "". Returns EInvalid for a wrong passphrase or none, ECorrupt for
// what is not a whole backup, EConflict for one of another version.
func Read(from io.Reader, passphrase, dir string) (*Contents, error) {
	in, err := unseal(from, passphrase)
	if err != nil {
		return nil, err
	}
	counted := &counter{from: in}
	t := tar.NewReader(counted)
	c, err := readContents(t)
	if err != nil {
		return nil, err
	}
	for i, want := range c.Files {
		h, err := t.Next()
		if err != nil || h.Name != want.Name || h.Typeflag != tar.TypeReg || h.Size != want.Size {
			return nil, damaged("file %d of %d, %.80q, is not there as the list says", i+1, len(c.Files), want.Name).Wrap(err)
		}
		if err := readFile(t, want, dir); err != nil {
			return nil, err
		}
	}
	// The end is two blocks of zeros, after what rounds the last file up to a block. The
	// reader of archives is content with less.
	end := counted.n + -counted.n&(blockSize-1) + 2*blockSize
	if _, err := t.Next(); !errors.Is(err, io.EOF) {
		return nil, damaged("more follows than the list says").Wrap(err)
	}
	if counted.n != end {
		return nil, damaged("its end is not there")
	}
	switch n, err := io.Copy(io.Discard, in); { // the last piece's seal, too
	case err != nil:
		return nil, damaged("its end is not there").Wrap(err)
	case n > 0:
		return nil, damaged("%d bytes follow its end", n)
	}
	return c, nil
}

// counter counts what is read.
type counter struct {
	from io.Reader
	n    int64
}

func (c *counter) Read(b []byte) (int, error) {
	n, err := c.from.Read(b)
	c.n += int64(n)
	return n, err
}

func unseal(from io.Reader, passphrase string) (io.Reader, error) {
	head := make([]byte, len(sealedMark))
	n, err := io.ReadFull(from, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return nil, err
	}
	from = io.MultiReader(bytes.NewReader(head[:n]), from)
	if string(head[:n]) != sealedMark {
		return from, nil
	}
	if passphrase == "" {
		return nil, muster.Errorf(muster.EInvalid, "the backup is sealed").Because(muster.ReasonRequired).WithHint("give the file with its passphrase: --passphrase-file FILE")
	}
	id, err := age.NewScryptIdentity(passphrase)
	if err != nil {
		return nil, err
	}
	id.SetMaxWorkFactor(20)
	out, err := age.Decrypt(from, id)
	if err != nil {
		return nil, muster.Errorf(muster.EInvalid, "the backup does not open with this passphrase").WithHint("look for the passphrase that it was made with").Wrap(err)
	}
	return out, nil
}

func readContents(t *tar.Reader) (*Contents, error) {
	h, err := t.Next()
	if err != nil || h.Name != contentsName || h.Size > mostContents {
		return nil, damaged("it does not begin with a list of its contents").Wrap(err)
	}
	b, err := io.ReadAll(io.LimitReader(t, mostContents))
	var c Contents
	if err == nil {
		c, err = contentsDoc.Decode("the backup", b)
	}
	switch {
	case muster.CodeOf(err) == muster.EConflict:
		return nil, otherVersion(err, b)
	case err != nil:
		return nil, damaged("the list of its contents cannot be read").Wrap(err)
	case len(c.Files) > mostFiles || c.Epoch < 1 || c.Instance == "":
		return nil, damaged("the list of its contents makes no sense")
	}
	var total int64
	seen := map[string]bool{}
	for _, f := range c.Files {
		if !goodName(f.Name) || seen[f.Name] || f.Size < 0 || len(f.SHA256) != 64 {
			return nil, damaged("%.80q cannot be a file of it", f.Name)
		}
		if total += f.Size; total > MostBytes || total < 0 {
			return nil, damaged("it holds too much")
		}
		seen[f.Name] = true
	}
	return &c, nil
}

// otherVersion says which program reads a backup that this one does not.
func otherVersion(err error, contents []byte) error {
	var by struct {
		Content struct {
			Version string `json:"version"`
		} `json:"content"`
	}
	var e *muster.Error
	if json.Unmarshal(contents, &by) == nil && by.Content.Version != "" && errors.As(err, &e) {
		return e.WithHint("restore it with the version that wrote it: %.40q", by.Content.Version)
	}
	return err
}

// goodName reports whether a name stays below the directory that it is read into.
func goodName(n string) bool {
	return n != "" && len(n) < 1024 && n == path.Clean(n) && !path.IsAbs(n) && n != "." && n != ".." && n != contentsName &&
		!strings.HasPrefix(n, "../") && !strings.ContainsAny(n, "\x00\\\n")
}

func readFile(t io.Reader, want File, dir string) error {
	h := sha256.New()
	var to io.Writer = h
	var out *os.File
	if dir != "" {
		at := filepath.Join(dir, filepath.FromSlash(want.Name))
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			return err
		}
		var err error
		if out, err = os.OpenFile(at, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600); err != nil {
			return err
		}
		to = io.MultiWriter(h, out)
	}
	n, err := io.Copy(to, t)
	if out != nil {
		err = errors.Join(err, out.Sync(), out.Close())
	}
	switch {
	case err != nil:
		return damaged("%.80q cannot be read", want.Name).Wrap(err)
	case n != want.Size || hex.EncodeToString(h.Sum(nil)) != want.SHA256:
		return damaged("%.80q is not what was written", want.Name)
	}
	return nil
}

func damaged(format string, args ...any) *muster.Error {
	return muster.Errorf(muster.ECorrupt, "the backup is damaged or not a backup: "+format, args...).WithHint("take another one; nothing was changed")
}

// Names lists the regular files below dir/sub, as names of a backup.
func Names(dir, sub string) ([]string, error) {
	var out []string
	err := filepath.WalkDir(filepath.Join(dir, sub), func(p string, d os.DirEntry, err error) error {
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if err == nil && !strings.HasSuffix(rel, ".new") {
			out = append(out, filepath.ToSlash(rel))
		}
		return err
	})
	slices.Sort(out)
	return out, err
}
