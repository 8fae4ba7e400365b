package certificate_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/certificate"
)

// Whatever comes in, the answer is a Failure with a hint, or it was signed.
func FuzzVerify(f *testing.F) {
	good := sign(f, node())
	f.Add(good)
	f.Add(sign(f, manifest(f, node(), other())))
	f.Add(append(bytes.Clone(good), sign(f, other())...))
	f.Add([]byte(`{"certificate":{"version":1},"key":"","signature":""}`))
	keys := ring(f, key(1))
	f.Fuzz(func(t *testing.T, in []byte) {
		s, err := certificate.Verify(in, keys, noon(), nil)
		if err == nil {
			if again, err := s.Envelope(); err != nil || s.Certificate.Check() != nil {
				t.Fatalf("%s was believed, and becomes %s, %v", in, again, err)
			}
		} else if !failure(err) {
			t.Fatalf("%q: %v is no failure", in, err)
		}
		split, err := certificate.Split(in)
		if err != nil {
			if !failure(err) {
				t.Fatalf("%q: %v is no failure", in, err)
			}
			return
		}
		for _, r := range certificate.VerifyAll(split, keys, noon(), nil) {
			if r.Err != nil && !failure(r.Err) {
				t.Fatalf("%q: %v is no failure", in, r.Err)
			}
		}
	})
}

// What a signer could make of a certificate is read or refused, never worse.
func FuzzSigned(f *testing.F) {
	for _, c := range []muster.Certificate{node(), manifest(f, node(), other())} {
		s, err := certificate.Verify(sign(f, c), ring(f, key(1)), noon(), nil)
		must(f, err)
		f.Add(s.Canonical)
	}
	keys := ring(f, key(1))
	f.Fuzz(func(t *testing.T, body []byte) {
		e, err := certificate.SignRaw(body, key(1))
		if err != nil || len(body) == 0 || body[0] != '{' {
			return
		}
		s, err := certificate.Verify(e, keys, noon(), nil)
		if err != nil {
			if !failure(err) {
				t.Fatalf("%s: %v is no failure", body, err)
			}
			var failed *certificate.Failure
			if errors.As(err, &failed) && failed.Reason == certificate.Altered {
				t.Fatalf("%s: %v", body, err)
			}
			return
		}
		again, err := certificate.Sign(s.Certificate, key(1))
		if err != nil {
			t.Fatalf("%s was believed, and cannot be signed: %v", body, err)
		}
		was := s.Certificate
		s, err = certificate.Verify(again, keys, noon(), nil)
		must(t, err)
		// What is null or absent is one in this.
		a, _ := json.Marshal(was)
		b, _ := json.Marshal(s.Certificate)
		a = bytes.ReplaceAll(a, []byte(`"cpus":null`), []byte(`"cpus":[]`))
		if !bytes.Equal(a, b) {
			t.Fatalf("%s became %s", a, b)
		}
	})
}

func FuzzKeys(f *testing.F) {
	one := public(f, key(1))
	list, err := json.Marshal(ring(f, key(1), key(2)))
	must(f, err)
	f.Add([]byte(one.PEM()))
	f.Add([]byte(one.Base64()))
	f.Add(list)
	f.Fuzz(func(t *testing.T, in []byte) {
		got, err := certificate.ParseKeys(in)
		if err != nil {
			var e *muster.Error
			if !errors.As(err, &e) || e.Hint == "" {
				t.Fatalf("%q: %v", in, err)
			}
			return
		}
		text, err := json.Marshal(got)
		if err != nil {
			return // a year that JSON does not have
		}
		if again, err := certificate.ParseKeys(text); err != nil || len(again.Keys) != len(got.Keys) || !reflect.DeepEqual(again.Join(again), again) {
			t.Fatalf("%q: %+v became %+v, %v", in, got, again, err)
		}
	})
}
