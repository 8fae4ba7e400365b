package certificate_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/certificate"
	"github.com/muster-hpc/muster/certificate/canonical"
	"pgregory.net/rapid"
)

// wantReason checks that a certificate fails for a reason, with a message and
// a hint that are its own.
func wantReason(t testing.TB, err error, want certificate.Reason, code muster.Code) {
	t.Helper()
	var f *certificate.Failure
	var e *muster.Error
	if !errors.As(err, &f) || f.Reason != want {
		t.Fatalf("got %v (%T), want %s", err, err, want)
	}
	if !errors.As(err, &e) || e.Code != code || e.Hint == "" || e.Message == "" || strings.Contains(e.Message, "%!") || strings.Contains(e.Hint, "%") {
		t.Fatalf("got %q with the hint %q and code %q, want a hint and code %q", e.Message, e.Hint, e.Code, code)
	}
}

func TestWhatIsSignedIsRead(t *testing.T) {
	t.Parallel()
	want := node()
	want.Made = want.Made.Add(700 * time.Millisecond).In(time.FixedZone("there", 3600)) // cut, and in UTC
	e := sign(t, want)
	if form, err := canonical.Exact(e); err != nil || !bytes.Equal(form, e) {
		t.Fatalf("the envelope is not canonical: %v", err)
	}
	s, err := certificate.Verify(e, ring(t, key(2), key(1)), noon(), certificate.Successors{"pc-other00000": "pc-more000000"})
	must(t, err)
	want = node()
	want.Conditions.NUMA[1].CPUs = []int{}
	if !reflect.DeepEqual(s.Certificate, want) {
		t.Fatalf("got  %+v\nwant %+v", s.Certificate, want)
	}
	if again, err := s.Envelope(); err != nil || !bytes.Equal(again, e) {
		t.Fatalf("the envelope became %s, %v", again, err)
	}
	if s.Digest != certificate.DigestOf(s.Canonical) || s.Key != public(t, key(1)).ID() {
		t.Fatalf("digest %s, key %s", s.Digest, s.Key)
	}
	// Laid out for people it is the same, also by programs that spell numbers
	// and letters in their own way.
	var pretty bytes.Buffer
	must(t, json.Indent(&pretty, e, "", "\t"))
	python := strings.NewReplacer(`": 1e-7`, `": 1e-07`, `": 30123456789`, `": 30123456789.0`, "n01 reads", `n01\u0020reads`).Replace(pretty.String())
	if strings.Count(python, "1e-07")+strings.Count(python, "789.0")+strings.Count(python, "u0020") < 3 {
		t.Fatal("nothing is spelled otherwise")
	}
	for _, text := range []string{pretty.String(), python, "\n" + string(e) + "\r\n"} {
		if s, err := certificate.Verify([]byte(text), ring(t, key(1)), noon(), nil); err != nil || !reflect.DeepEqual(s.Certificate, want) {
			t.Fatalf("%v: %s", err, text)
		}
	}
}

// No byte may be another one, and none may be missing.
func TestOneAlteredByte(t *testing.T) {
	t.Parallel()
	e, keys := sign(t, node()), ring(t, key(1))
	for i := range e {
		// Another letter, letters in another case, no ASCII, space, digits: in turn.
		b := []byte{e[i] ^ 1, e[i] ^ 0x20, e[i] ^ 0x80, ' ', '0', '"'}[i%6]
		if b == e[i] {
			b = e[i] ^ 2
		}
		bad := bytes.Clone(e)
		bad[i] = b
		if _, err := certificate.Verify(bad, keys, noon(), nil); !failure(err) {
			t.Fatalf("byte %d as %q: %v", i, b, err)
		}
		if i%5 != 0 {
			continue
		}
		if _, err := certificate.Verify(e[:i], keys, noon(), nil); !failure(err) {
			t.Fatalf("cut after %d bytes: %v", i, err)
		}
		if _, err := certificate.Verify(append(bytes.Clone(e[:i]), e[i+1:]...), keys, noon(), nil); !failure(err) {
			t.Fatalf("without byte %d: %v", i, err)
		}
	}
	// A figure that reads as another number is told so.
	_, err := certificate.Verify(bytes.Replace(e, []byte(`"median":30123456789`), []byte(`"median":33123456789`), 1), keys, noon(), nil)
	wantReason(t, err, certificate.Altered, muster.ECorrupt)
}

func failure(err error) bool {
	var f *certificate.Failure
	return errors.As(err, &f) && f.Err.Hint != ""
}

func TestWhyNot(t *testing.T) {
	t.Parallel()
	good := string(sign(t, node()))
	day := 24 * time.Hour
	from := func(k muster.SigningKey) certificate.Ring { return certificate.Ring{Keys: []muster.SigningKey{k}} }
	one := certificate.NewKey(public(t, key(1)), time.Time{})
	retired, young, lost := one, one, one
	retired.Until = noon().Add(-time.Second)
	young.From = noon().Add(time.Hour)
	lost.Compromised = noon().Add(day)
	for name, c := range map[string]struct {
		envelope string
		keys     certificate.Ring
		at       time.Time
		known    certificate.Successors
		want     certificate.Reason
		code     muster.Code
		text     string
	}{
		"not JSON":        {envelope: "%PDF-1.7", want: certificate.NotJSON, code: muster.EInvalid, text: "not JSON"},
		"empty":           {envelope: "", want: certificate.NotJSON, code: muster.EInvalid},
		"twice":           {envelope: strings.Replace(good, `"key":`, `"key":"","key":`, 1), want: certificate.NotJSON, code: muster.EInvalid, text: "byte"},
		"another JSON":    {envelope: `{"clusters":[]}`, want: certificate.Malformed, code: muster.EInvalid, text: `"certificate"`},
		"no object":       {envelope: `[1]`, want: certificate.Malformed, code: muster.EInvalid},
		"nothing":         {envelope: `null`, want: certificate.Malformed, code: muster.EInvalid},
		"certificate 1":   {envelope: `{"certificate":1,"key":"","signature":""}`, want: certificate.Malformed, code: muster.EInvalid},
		"key 1":           {envelope: `{"certificate":{},"key":1,"signature":""}`, want: certificate.Malformed, code: muster.EInvalid},
		"one more":        {envelope: strings.Replace(good, `{"certificate"`, `{"approved":true,"certificate"`, 1), want: certificate.Malformed, code: muster.EInvalid, text: `"approved"`},
		"rewritten":       {envelope: strings.Replace(good, `"median":1e-7`, `"median":1.0e-07`, 1), want: certificate.Altered, code: muster.ECorrupt, text: "byte"},
		"a figure":        {envelope: strings.Replace(good, `"launches":6`, `"launches":9`, 1), want: certificate.Altered, code: muster.ECorrupt},
		"a field":         {envelope: strings.Replace(good, `"certified":true`, `"certified":true,"checked":true`, 1), want: certificate.Altered, code: muster.ECorrupt},
		"half signature":  {envelope: good[:len(good)-10] + `"}`, want: certificate.Altered, code: muster.ECorrupt},
		"no key":          {keys: certificate.Ring{Keys: []muster.SigningKey{}}, want: certificate.UnknownKey, code: muster.ENotFound},
		"a wrong key":     {keys: ring(t, key(2)), want: certificate.UnknownKey, code: muster.ENotFound, text: public(t, key(1)).ID()},
		"key retired":     {keys: from(retired), want: certificate.KeyRetired, code: muster.EForbidden, text: "2026-03-01 11:59:59 UTC"},
		"key not yet":     {keys: from(young), want: certificate.KeyNotYet, code: muster.EForbidden},
		"key compromised": {keys: from(lost), want: certificate.KeyCompromised, code: muster.EForbidden},
		"not yet":         {at: noon().Add(-certificate.Skew - time.Second), want: certificate.NotYetValid, code: muster.EConflict},
		"expired":         {at: noon().Add(30 * day), want: certificate.Expired, code: muster.EConflict, text: "2026-03-31 12:00:00 UTC"},
		"superseded":      {known: certificate.Successors{"pc-2345678bcd": "pc-next"}, want: certificate.Superseded, code: muster.EConflict, text: "pc-next"},
		"too new":         {envelope: string(signRaw(t, `{"id":"pc-2345678bcd","version":2,"kind":["a","b"]}`)), want: certificate.TooNew, code: muster.EInvalid, text: "version 2"},
		"signed nonsense": {envelope: string(signRaw(t, `{"id":"pc-2345678bcd","version":1}`)), want: certificate.Malformed, code: muster.EInvalid, text: "kind"},
		"signed types":    {envelope: string(signRaw(t, `{"id":"pc-2345678bcd","version":1,"cluster":1}`)), want: certificate.Malformed, code: muster.EInvalid},
		"signed version":  {envelope: string(signRaw(t, `{"version":"1"}`)), want: certificate.Malformed, code: muster.EInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.envelope == "" && name != "empty" {
				c.envelope = good
			}
			if c.keys.Keys == nil {
				c.keys = ring(t, key(1))
			}
			if c.at.IsZero() {
				c.at = noon()
			}
			_, err := certificate.Verify([]byte(c.envelope), c.keys, c.at, c.known)
			wantReason(t, err, c.want, c.code)
			if !strings.Contains(err.Error(), c.text) {
				t.Fatalf("got %q, want %q in it", err, c.text)
			}
		})
	}
	// The edges are inside.
	for _, at := range []time.Time{noon().Add(-certificate.Skew), noon(), noon().Add(30*day - time.Second)} {
		if _, err := certificate.Verify([]byte(good), ring(t, key(1)), at, nil); err != nil {
			t.Errorf("at %s: %v", at, err)
		}
	}
	retired.Until = noon()
	if _, err := certificate.Verify([]byte(good), from(retired), noon().Add(day), nil); err != nil {
		t.Errorf("made while the key was good: %v", err)
	}
}

func signRaw(t *testing.T, body string) []byte {
	t.Helper()
	e, err := certificate.SignRaw([]byte(body), key(1))
	must(t, err)
	return e
}

func TestBundle(t *testing.T) {
	t.Parallel()
	m := manifest(t, node(), other())
	n1, n2, all := sign(t, node()), sign(t, other()), sign(t, m)
	next := other()
	next.ID, next.Supersedes, next.Made = "pc-newnewnewn", []muster.CertificateID{other().ID}, noon().Add(time.Minute)
	elsewhere := other()
	elsewhere.Verdict = muster.GradeUnknown // the same ID, other bytes
	wrongNode := manifest(t, node(), other())
	wrongNode.Nodes[0].Digest, wrongNode.Nodes[1].Digest = wrongNode.Nodes[1].Digest, wrongNode.Nodes[0].Digest
	altered := bytes.Replace(n2, []byte(`"level":"quick"`), []byte(`"level":"quack"`), 1)
	for name, c := range map[string]struct {
		in   [][]byte
		at   time.Time
		want []certificate.Reason // of each
	}{
		"whole":            {in: [][]byte{all, n1, n2}, want: []certificate.Reason{"", "", ""}},
		"nodes first":      {in: [][]byte{n2, n1, all}, want: []certificate.Reason{"", "", ""}},
		"one missing":      {in: [][]byte{all, n1}, want: []certificate.Reason{certificate.NodeMissing, ""}},
		"alone":            {in: [][]byte{all}, want: []certificate.Reason{certificate.NodeMissing}},
		"nodes alone":      {in: [][]byte{n1, n2}, want: []certificate.Reason{"", ""}},
		"one of them else": {in: [][]byte{all, n1, sign(t, elsewhere)}, want: []certificate.Reason{certificate.NodeDiffers, "", ""}},
		"one altered":      {in: [][]byte{all, n1, altered}, want: []certificate.Reason{certificate.NodeDiffers, "", certificate.Altered}},
		"exchanged":        {in: [][]byte{sign(t, wrongNode), n1, n2}, want: []certificate.Reason{certificate.NodeDiffers, "", ""}},
		"one superseded":   {in: [][]byte{all, n1, n2, sign(t, next)}, want: []certificate.Reason{certificate.Superseded, "", certificate.Superseded, ""}},
		"expired":          {in: [][]byte{all, n1, n2}, at: noon().Add(time.Hour * 24 * 90), want: []certificate.Reason{certificate.Expired, certificate.Expired, certificate.Expired}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.at.IsZero() {
				c.at = noon().Add(time.Hour)
			}
			split, err := certificate.Split(append([]byte("\n "), bytes.Join(c.in, []byte("\n"))...))
			must(t, err)
			if len(split) != len(c.in) {
				t.Fatalf("%d certificates, want %d", len(split), len(c.in))
			}
			results := certificate.VerifyAll(split, ring(t, key(1)), c.at, nil)
			for i, r := range results {
				var f *certificate.Failure
				var got certificate.Reason
				if errors.As(r.Err, &f) {
					got = f.Reason
				}
				if got != c.want[i] {
					t.Errorf("certificate %d: got %q (%v), want %q", i, got, r.Err, c.want[i])
				}
			}
		})
	}
	if _, err := certificate.Split([]byte(" \n")); !failure(err) {
		t.Errorf("an empty bundle: %v", err)
	}
	_, err := certificate.Split(append(bytes.Clone(n1), "{"...))
	wantReason(t, err, certificate.NotJSON, muster.EInvalid)
}

// A node that was replaced is superseded only by who can prove it.
func TestOnlySignedSuccessors(t *testing.T) {
	t.Parallel()
	next := other()
	next.ID, next.Supersedes = "pc-newnewnewn", []muster.CertificateID{other().ID}
	forged, err := certificate.Sign(next, key(9))
	must(t, err)
	results := certificate.VerifyAll([][]byte{sign(t, other()), forged}, ring(t, key(1)), noon(), nil)
	if results[0].Err != nil {
		t.Errorf("a stranger's certificate superseded one: %v", results[0].Err)
	}
	wantReason(t, results[1].Err, certificate.UnknownKey, muster.ENotFound)
}

func TestSignRefuses(t *testing.T) {
	t.Parallel()
	shared := node()
	shared.Conditions.Shared = true
	if _, err := certificate.Sign(shared, key(1)); muster.CodeOf(err) != muster.EInvalid {
		t.Errorf("a shared machine was certified: %v", err)
	}
	large := node()
	large.Conditions.Memory = 1<<53 + 1
	if _, err := certificate.Sign(large, key(1)); muster.CodeOf(err) != muster.EInvalid {
		t.Errorf("a number that others read otherwise was signed: %v", err)
	}
	if _, err := certificate.Sign(node(), nil); muster.CodeOf(err) != muster.EInternal {
		t.Errorf("signed without a key: %v", err)
	}
}

// What an older program does not know is signed all the same, and kept.
func TestUnknownFieldsAreKept(t *testing.T) {
	t.Parallel()
	s, err := certificate.Verify(sign(t, other()), ring(t, key(1)), noon(), nil)
	must(t, err)
	body := strings.Replace(string(s.Canonical), `"certified":true`, `"certified":true,"colour":"blue"`, 1)
	e := signRaw(t, body)
	s, err = certificate.Verify(e, ring(t, key(1)), noon(), nil)
	must(t, err)
	if again, err := s.Envelope(); err != nil || !bytes.Equal(again, e) || !bytes.Contains(e, []byte(`"colour":"blue"`)) {
		t.Fatalf("got %s, %v, want %s", again, err, e)
	}
}

// The signature is what the documentation says it is: anybody's Ed25519 over
// the prefix and the bytes between two known places of the file.
func TestSignatureIsPlainEd25519(t *testing.T) {
	t.Parallel()
	e := string(sign(t, node()))
	body, rest, ok := strings.Cut(strings.TrimPrefix(e, `{"certificate":`), `,"key":"sha256:`)
	if !ok {
		t.Fatal(e)
	}
	_, signature, _ := strings.Cut(strings.TrimSuffix(rest, `"}`), `"signature":"`)
	raw, err := base64.StdEncoding.DecodeString(signature)
	must(t, err)
	if !ed25519.Verify(key(1).Public().(ed25519.PublicKey), []byte("muster performance certificate\x00"+body), raw) {
		t.Fatal("the signature is not of the prefix and the bytes in the file")
	}
}

func TestRandomCertificates(t *testing.T) {
	t.Parallel()
	keys := ring(t, key(1))
	rapid.Check(t, func(t *rapid.T) {
		c := node()
		low := rapid.Float64Range(0, 1e15).Draw(t, "low")
		high := low + rapid.Float64Range(0, 1e15).Draw(t, "more")
		c.Metrics[1].Min, c.Metrics[1].Median, c.Metrics[1].Max = low, low+(high-low)/2, high
		c.Findings[0].Text = "x" + strings.Map(func(r rune) rune {
			if r&0xfffe == 0xfffe || r >= 0xfdd0 && r <= 0xfdef {
				return -1
			}
			return r
		}, rapid.String().Draw(t, "text"))
		c.Conditions.Memory = rapid.Int64Range(0, 1<<53).Draw(t, "memory")
		c.Made = c.Made.Add(time.Duration(rapid.Int64Range(0, 1e9).Draw(t, "made")) * time.Second)
		c.Expires = c.Made.Add(time.Hour)
		e, err := certificate.Sign(c, key(1))
		if err != nil {
			t.Fatal(err)
		}
		s, err := certificate.Verify(e, keys, c.Made, nil)
		if err != nil {
			t.Fatal(err)
		}
		c.Conditions.NUMA[1].CPUs = []int{}
		if !reflect.DeepEqual(s.Certificate, c) {
			t.Fatalf("got  %+v\nwant %+v", s.Certificate, c)
		}
		if again, err := certificate.Sign(s.Certificate, key(1)); err != nil || !bytes.Equal(again, e) {
			t.Fatalf("signed again it differs: %v", err)
		}
		at := rapid.IntRange(0, len(e)-1).Draw(t, "at")
		bad := bytes.Clone(e)
		bad[at] ^= byte(rapid.IntRange(1, 255).Draw(t, "bits"))
		if _, err := certificate.Verify(bad, keys, c.Made, nil); !failure(err) {
			t.Fatalf("byte %d altered: %v", at, err)
		}
	})
}
