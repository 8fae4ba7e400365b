package save

import (
	"testing"

	"github.com/muster-hpc/muster/internal/document/documenttest"
)

func TestDocuments(t *testing.T) { documenttest.Check(t, recordDoc) }

func FuzzRecord(f *testing.F) {
	b, err := Begin([]Node{{Name: "n01", Head: true}}).Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := DecodeRecord("a record", b)
		if err != nil {
			return
		}
		if again, err := r.Encode(); err != nil || len(again) == 0 {
			t.Errorf("%v", err)
		}
	})
}
