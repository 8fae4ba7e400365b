package canonical_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/muster-hpc/muster/certificate/canonical"
	"pgregory.net/rapid"
)

// The doubles of RFC 8785, appendix B, by their bits, and how each is printed.
func TestNumbersOfTheRFC(t *testing.T) {
	t.Parallel()
	for bits, want := range map[uint64]string{
		0x0000000000000000: "0",
		0x8000000000000000: "0",
		0x0000000000000001: "5e-324",
		0x8000000000000001: "-5e-324",
		0x7fefffffffffffff: "1.7976931348623157e+308",
		0xffefffffffffffff: "-1.7976931348623157e+308",
		0x4340000000000000: "9007199254740992",
		0xc340000000000000: "-9007199254740992",
		0x4430000000000000: "295147905179352830000",
		0x44b52d02c7e14af5: "9.999999999999997e+22",
		0x44b52d02c7e14af6: "1e+23",
		0x44b52d02c7e14af7: "1.0000000000000001e+23",
		0x444b1ae4d6e2ef4e: "999999999999999700000",
		0x444b1ae4d6e2ef4f: "999999999999999900000",
		0x444b1ae4d6e2ef50: "1e+21",
		0x3eb0c6f7a0b5ed8c: "9.999999999999997e-7",
		0x3eb0c6f7a0b5ed8d: "0.000001",
		0x41b3de4355555553: "333333333.3333332",
		0x41b3de4355555554: "333333333.33333325",
		0x41b3de4355555555: "333333333.3333333",
		0x41b3de4355555556: "333333333.3333334",
		0x41b3de4355555557: "333333333.33333343",
		0xbecbf647612f3696: "-0.0000033333333333333333",
		0x43143ff3c1cb0959: "1424953923781206.2",
	} {
		f := math.Float64frombits(bits)
		if got := canonicalOf(t, strconv.FormatFloat(f, 'e', 25, 64)); got != want {
			t.Errorf("%016x: got %s, want %s", bits, got, want)
		}
		if f == 0 {
			continue
		}
		if got, err := canonical.Marshal(f); err != nil || string(got) != want {
			t.Errorf("%016x marshalled: got %s, %v, want %s", bits, got, err, want)
		}
		if got, err := canonical.Exact([]byte(want)); err != nil || string(got) != want {
			t.Errorf("%s is not what it is: %s, %v", want, got, err)
		}
	}
}

func TestForm(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		// Order by UTF-16: U+1F600, as D83D DE00, stands before U+FB33.
		`{"\u20ac":1,"\r":2,"\ufb33":3,"1":4,"\ud83d\ude00":5,"\u0080":6,"\u00f6":7}`: "{\"\\r\":2,\"1\":4,\"\u0080\":6,\"ö\":7,\"€\":1,\"😀\":5,\"\ufb33\":3}",
		`[333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001]`:       `[333333333.3333333,1e+30,4.5,0.002,1e-27]`,
		`"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/"`:                             `"€$\u000f\nA'B\"\\\\\"/"`,
		"\"\\b\\t\\n\\f\\r\\u0000\\u001F\\u007f<>&\u2028\"":                           "\"\\b\\t\\n\\f\\r\\u0000\\u001f\u007f<>&\u2028\"",
		" [ true , false , null , { } , [ ] ] ":                                       `[true,false,null,{},[]]`,
		`{"b":{"d":1,"c":2},"a":[{"y":0,"x":-0}]}`:                                    `{"a":[{"x":0,"y":0}],"b":{"c":2,"d":1}}`,
		`{"aa":1,"a":2,"":3}`: `{"":3,"a":2,"aa":1}`,
		`1e-400`:              `0`,
	} {
		if got := canonicalOf(t, in); got != want {
			t.Errorf("%s\n got %s\nwant %s", in, got, want)
		}
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]int{ // at which byte
		"":                         0,
		" ":                        0,
		"{":                        1,
		`{"a"`:                     4,
		`{"a":}`:                   5,
		`{"a":1`:                   6,
		`{"a":1,}`:                 6,
		`{a:1}`:                    1,
		`{"a":1,"a":1}`:            7,
		`{"a":1,"\u0061":2}`:       7,
		`[1,{"x":{"b":1,"b":2}}]`:  15,
		"[1":                       2,
		"[1,]":                     2,
		"[1 2]":                    3,
		"1 2":                      2,
		"01":                       1,
		"-":                        0,
		"+1":                       0,
		"1.":                       0,
		".5":                       0,
		"1e":                       0,
		"1e+":                      0,
		"1e309":                    0,
		"-1e309":                   0,
		"NaN":                      0,
		"nul":                      3,
		"truE":                     3,
		`"`:                        1,
		`"\`:                       1,
		`"\x"`:                     1,
		`"\u12"`:                   1,
		`"\u12g4"`:                 1,
		`"\u+123"`:                 1,
		`"\ud800"`:                 1,
		`"\udc00\ud800"`:           1,
		`"\ud800\u0041"`:           1,
		`"\uffff"`:                 0,
		`"\ud83f\udffe"`:           0,
		"\"\ufdd0\"":               0,
		"\"\n\"":                   1,
		"\"\xff\"":                 1,
		"\"\xed\xa0\x80\"":         1, // a surrogate in UTF-8
		"\x00":                     0,
		"\xef\xbb\xbf1":            0, // a byte order mark
		strings.Repeat("[", 65):    64,
		strings.Repeat("[", 1<<20): 64,
	} {
		got, err := canonical.JSON([]byte(in))
		var syntax *canonical.SyntaxError
		if !errors.As(err, &syntax) || syntax.At != want {
			t.Errorf("%.40q: got %q, %v, want an error at byte %d", in, got, err, want)
		}
	}
	if got := canonicalOf(t, strings.Repeat("[", 64)+strings.Repeat("]", 64)); len(got) != 128 {
		t.Errorf("64 arrays inside each other: %s", got)
	}
}

func TestExactWantsCanonicalValues(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"{ \"b\" : 1e-7 ,\n\"a\" : \"x\" }": "", // space and order may differ
		"1.0":                               "is written 1",
		"1E-7":                              "is written 1e-7",
		"-0":                                "is written 0",
		"0.30000000000000005":               "is written 0.30000000000000004",
		"9007199254740993":                  "is written 9007199254740992",
		`"\u0041"`:                          "is written",
		`"\/"`:                              "is written",
		`"\u000F"`:                          "is written",
		`{"\u0041":1}`:                      "is written",
	} {
		_, err := canonical.Exact([]byte(in))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", in, err, want)
		}
	}
}

func TestMarshal(t *testing.T) {
	t.Parallel()
	got, err := canonical.Marshal(struct {
		B string  `json:"b"`
		A float64 `json:"a"`
	}{"<&>\u2028", math.Copysign(0, -1)})
	if want := "{\"a\":0,\"b\":\"<&>\u2028\"}"; err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	if got, err := canonical.Marshal(int64(1<<53 + 1)); err == nil {
		t.Errorf("a number that no double holds became %s", got)
	}
	if got, err := canonical.Marshal(math.NaN()); err == nil {
		t.Errorf("no number became %s", got)
	}
}

func TestNext(t *testing.T) {
	t.Parallel()
	data := []byte(" {\"a\":1}\n[2] \"x\"3\n ")
	var got []string
	for {
		text, rest, err := canonical.Next(data)
		if err != nil {
			t.Fatal(err)
		}
		if text == nil {
			break
		}
		got, data = append(got, string(text)), rest
	}
	if want := []string{`{"a":1}`, `[2]`, `"x"`, `3`}; !reflect.DeepEqual(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}
	if _, _, err := canonical.Next([]byte("{")); err == nil {
		t.Fatal("half an object is a text")
	}
}

// What is canonical stays so; one altered byte gives another form or none.
func TestProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		v := value(3).Draw(t, "value")
		text, err := canonical.Marshal(v)
		if err != nil {
			t.Fatalf("%#v: %v", v, err)
		}
		var back any
		if err := json.Unmarshal(text, &back); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if again, err := canonical.Marshal(back); err != nil || !bytes.Equal(again, text) {
			t.Fatalf("%s became %s, %v", text, again, err)
		}
		indented, _ := json.MarshalIndent(json.RawMessage(text), "", "\t")
		if free, err := canonical.JSON(indented); err != nil || !bytes.Equal(free, text) {
			t.Fatalf("%s indented became %s, %v", text, free, err)
		}
		at := rapid.IntRange(0, len(text)-1).Draw(t, "at")
		altered := bytes.Clone(text)
		altered[at] ^= byte(rapid.IntRange(1, 255).Draw(t, "bits"))
		if form, err := canonical.Exact(altered); err == nil && bytes.Equal(form, text) {
			t.Fatalf("%s still has the form of %s", altered, text)
		}
	})
}

func value(depth int) *rapid.Generator[any] {
	float := rapid.OneOf(rapid.Float64(), rapid.Map(rapid.Int32(), func(n int32) float64 { return float64(n) / 8 }))
	kinds := []*rapid.Generator[any]{
		rapid.Map(float, func(f float64) any { return f }),
		rapid.Map(rapid.StringOf(rapid.OneOf(rapid.Rune(), rapid.SampledFrom([]rune{0, '\n', '"', '\\', '<', 0x7f, 0x2028, 0xe000, 0xfb33, 0x1f600}))),
			func(s string) any { return strings.Map(character, s) }),
		rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		rapid.Just[any](nil),
	}
	if depth > 0 {
		key := rapid.Map(rapid.StringN(0, 4, -1), func(s string) string { return strings.Map(character, s) })
		kinds = append(kinds,
			rapid.Map(rapid.SliceOfN(value(depth-1), 0, 4), func(s []any) any { return s }),
			rapid.Map(rapid.MapOfN(key, value(depth-1), 0, 4), func(m map[string]any) any { return m }))
	}
	return rapid.OneOf(kinds...)
}

// character takes what I-JSON does not have out of a text.
func character(r rune) rune {
	if r >= 0xfdd0 && r <= 0xfdef || r&0xfffe == 0xfffe {
		return -1
	}
	return r
}

func FuzzJSON(f *testing.F) {
	for _, s := range []string{`{"b":1,"a":[1e30,-0,"\u20ac\ud83d\ude00"]}`, `"\u000f\/"`, "0.30000000000000005", `{"a":1,"\u0061":2}`, "[[[]]] ", "1e-7"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		form, err := canonical.JSON(in)
		exact, exactErr := canonical.Exact(in)
		if err != nil {
			if exactErr == nil {
				t.Fatalf("%q is exact, and refused: %v", in, err)
			}
			return
		}
		if exactErr == nil && !bytes.Equal(exact, form) {
			t.Fatalf("%q has two forms: %q and %q", in, form, exact)
		}
		if again, err := canonical.Exact(form); err != nil || !bytes.Equal(again, form) {
			t.Fatalf("%q became %q, then %q, %v", in, form, again, err)
		}
		var was, is any
		if err := json.Unmarshal(in, &was); err != nil {
			t.Fatalf("%q is no JSON to others: %v", in, err)
		}
		if err := json.Unmarshal(form, &is); err != nil || !reflect.DeepEqual(was, is) {
			t.Fatalf("%q and %q differ: %v", in, form, err)
		}
		text, rest, err := canonical.Next(in)
		if err != nil || len(bytes.TrimSpace(rest)) > 0 || !bytes.Equal(text, bytes.Trim(in, " \t\r\n")) {
			t.Fatalf("%q: next is %q, rest %q, %v", in, text, rest, err)
		}
	})
}

func canonicalOf(t *testing.T, text string) string {
	t.Helper()
	got, err := canonical.JSON([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return string(got)
}
