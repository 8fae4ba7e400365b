// Package document writes and reads what Muster keeps as JSON: the records in the
// store and the notes in its directories. Each says what it is and in which version,
// and is read as that and nothing else: a document of another version, or with a key
// that this program does not know, is refused instead of misread.
//
// What two programs say to each other is no document: see package wire.
package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/muster-hpc/muster"
)

// Kind is the name and the version of the documents that hold a T, such as "site/1". It
// is a constant beside T. The keys of T are part of its version: whoever adds, renames
// or removes one raises the number, and says how documents of the old one are read.
type Kind[T any] string

// envelope is a document as it lies on disk.
type envelope[T any] struct {
	Document string `json:"document"`
	Content  *T     `json:"content"`
}

// Encode writes a document on one line, without a line's end.
func (k Kind[T]) Encode(v *T) ([]byte, error) {
	return json.Marshal(envelope[T]{string(k), v})
}

// Decode reads a document; what names it in errors: the path of its file.
//
// Errors: EConflict for a document of another kind or version, or one that names none;
// ECorrupt for anything else that Encode did not write.
func (k Kind[T]) Decode(what string, b []byte) (T, error) {
	var none T
	var e envelope[T]
	err := strict(b, &e)
	if err == nil && e.Document == string(k) && e.Content != nil {
		return *e.Content, nil
	}
	if other := k.other(what, b); other != nil {
		return none, other
	}
	if err == nil {
		err = errors.New("it has no content")
	}
	return none, muster.Errorf(muster.ECorrupt, "%s is damaged: it is not what was written as %s", what, k).Because(muster.ReasonStoreDamaged).
		WithHint("restore it from a backup").Wrap(err)
}

// strict reads exactly one value, all of whose keys are known.
func strict(b []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows it")
	}
	return nil
}

// Check reports an EConflict, as Decode does, for a document that is of another kind or
// version. What it holds is not looked at.
func (k Kind[T]) Check(what string, b []byte) error {
	if err := k.other(what, b); err != nil {
		return err
	}
	return nil
}

// other is the error for a whole document that is not of this kind and version.
func (k Kind[T]) other(what string, b []byte) *muster.Error {
	var head struct {
		Document string `json:"document"`
	}
	if json.Unmarshal(b, &head) != nil || head.Document == string(k) {
		return nil //nolint:nilerr // it is damaged, and not another
	}
	name, version := Split(string(k))
	if head.Document == "" {
		return muster.Errorf(muster.EConflict, "%s names no version; this program reads %s", what, k).Because(muster.ReasonOtherVersion).
			WithHint("an earlier muster wrote it: run that one, or restore a backup that this one reads")
	}
	e := muster.Errorf(muster.EConflict, "%s is %.80q; this program reads %s", what, head.Document, k).Because(muster.ReasonOtherVersion)
	has, v := Split(head.Document)
	switch {
	case has != name:
		return e.WithHint("this is another file's content: put the right one there, or restore it from a backup")
	case v > version:
		return e.WithHint("run the newer muster that wrote it, or restore a backup of before the upgrade")
	}
	return e.WithHint("run the older muster that wrote it, or restore a backup that this one reads")
}

// Split gives the name and the version of a kind; 0 where it has none.
func Split(kind string) (name string, version int) {
	name, number, _ := strings.Cut(kind, "/")
	version, err := strconv.Atoi(number)
	if err != nil || version < 1 {
		return name, 0
	}
	return name, version
}
