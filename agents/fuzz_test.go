package agents_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/agents"
)

func FuzzDecodeReport(f *testing.F) {
	f.Add([]byte(`{"attempt":1,"state":"ready","stages":[{"name":"a","at":"2026-01-01T00:00:00Z"}],"journal":[{"message":"x"}],"scheduler":{"up":true,"nodes":{"n01":"idle"}}}`))
	f.Add([]byte(`{"attempt":1,"state":"ready","checks":null,"usage":{"cpu_user":1e308}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := agents.DecodeReport(bytes.NewReader(b))
		if err != nil {
			if muster.CodeOf(err) != muster.EInvalid {
				t.Errorf("%v", err)
			}
			return
		}
		if r.Attempt < 1 || len(r.Stages) > 64 || len(r.Checks) > 64 || len(r.Journal) > 2000 {
			t.Errorf("%+v", r)
		}
		for _, l := range r.Journal {
			if len(l.Message) > 4<<10 || strings.ContainsAny(l.Message, "\x00\x1b\r\n") {
				t.Errorf("line %q", l.Message)
			}
		}
	})
}

func FuzzDecodeJoin(f *testing.F) {
	f.Add([]byte(`{"protocol":1,"machine":"m","attempt":1,"token":"mjt_secret","csr":"x"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		q, err := agents.DecodeJoin(bytes.NewReader(b))
		if err != nil && (muster.CodeOf(err) != muster.EInvalid || q.Token != "") {
			t.Errorf("%v", err)
		}
		if err == nil && (q.Attempt < 1 || q.Machine == "") {
			t.Errorf("%+v", q)
		}
	})
}
