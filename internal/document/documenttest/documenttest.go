// Package documenttest checks what packages keep as JSON: that every key is written
// down in a tag, and that the documents are those that lie in testdata/documents.
package documenttest

import (
	"bytes"
	"encoding"
	"encoding/json"
	"hash/fnv"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/document"
)

// Dir is where a package has its golden documents.
const Dir = "testdata/documents"

// Golden is the name of a kind's golden document.
func Golden(kind string) string { return strings.ReplaceAll(kind, "/", "-") + ".json" }

// Check compares a document of a kind, with a value in every field, with the golden one,
// and checks that documents are refused that are not quite it. MUSTER_UPDATE=1 writes the golden one.
func Check[T any](t *testing.T, kind document.Kind[T]) {
	t.Helper()
	name, version := document.Split(string(kind))
	if version == 0 || string(kind) != name+"/"+strconv.Itoa(version) {
		t.Fatalf("%q is not a name and a version such as site/1", string(kind))
	}
	t.Run(name, func(t *testing.T) {
		full, b, golden := compare(t, string(kind), kind.Encode)
		got, err := kind.Decode("the golden document", golden)
		if err != nil || !reflect.DeepEqual(got, *full) {
			t.Errorf("the golden document is read as %+v, %v; want %+v", got, err, *full)
		}
		refuses(t, kind, name, version, b)
	})
}

// CheckOwn compares a document that says its version itself, and is written by encode,
// with the golden one of that name and version.
func CheckOwn[T any](t *testing.T, name string, version int, encode func(*T) ([]byte, error)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		full, _, golden := compare(t, name+"/"+strconv.Itoa(version), encode)
		d := json.NewDecoder(bytes.NewReader(golden))
		d.DisallowUnknownFields()
		var got T
		if err := d.Decode(&got); err != nil || !reflect.DeepEqual(got, *full) {
			t.Errorf("the golden document is read as %+v, %v; want %+v", got, err, *full)
		}
	})
}

// compare compares a document with a value in every field with the golden one, and gives
// both, on one line.
func compare[T any](t *testing.T, kind string, encode func(*T) ([]byte, error)) (full *T, b, golden []byte) {
	t.Helper()
	for _, fault := range Untagged(reflect.TypeFor[T]()) {
		t.Error(fault)
	}
	full = new(T)
	name, _ := document.Split(kind)
	fill(reflect.ValueOf(full).Elem(), name)
	b, err := encode(full)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(Dir, Golden(kind))
	if os.Getenv("MUSTER_UPDATE") != "" {
		write(t, path, b)
	}
	golden, err = os.ReadFile(path)
	if err != nil {
		t.Fatalf("there is no document to compare with: run this once with MUSTER_UPDATE=1: %v", err)
	}
	if !reflect.DeepEqual(plain(t, b), plain(t, golden)) {
		t.Errorf("documents of kind %s have another form now: raise the version, say how the old one is read, and run this once with MUSTER_UPDATE=1\n%s\nhas\n%s", kind, b, golden)
	}
	var line bytes.Buffer // a raw message keeps its spaces
	if err := json.Compact(&line, golden); err != nil {
		t.Fatal(err)
	}
	return full, b, line.Bytes()
}

// refuses has everything refused that is not this kind's document.
func refuses[T any](t *testing.T, kind document.Kind[T], name string, version int, b []byte) {
	t.Helper()
	head := `"` + string(kind) + `"`
	var e struct {
		Content json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(b, &e); err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		doc  []byte
		code muster.Code
	}{
		"a newer version":   {bytes.Replace(b, []byte(head), []byte(`"`+name+"/"+strconv.Itoa(version+1)+`"`), 1), muster.EConflict},
		"another kind":      {bytes.Replace(b, []byte(head), []byte(`"other/1"`), 1), muster.EConflict},
		"no version":        {e.Content, muster.EConflict},
		"an unknown key":    {bytes.Replace(b, []byte(`"content":{`), []byte(`"content":{"unheard_of":1,`), 1), muster.ECorrupt},
		"more than content": {append(bytes.TrimSuffix(slices.Clone(b), []byte("}")), `,"unheard_of":1}`...), muster.ECorrupt},
		"half a document":   {b[:len(b)/2], muster.ECorrupt},
	} {
		if what == "no version" && (len(e.Content) == 0 || e.Content[0] != '{') || what == "an unknown key" && reflect.TypeFor[T]().Kind() != reflect.Struct {
			continue // a list has no place for it
		}
		if got, err := kind.Decode("it", c.doc); muster.CodeOf(err) != c.code {
			t.Errorf("with %s it is read as %+v, %v; want code %s", what, got, err, c.code)
		}
	}
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	var out bytes.Buffer
	if err := json.Indent(&out, b, "", "  "); err != nil {
		t.Fatal(err)
	}
	out.WriteByte('\n')
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

func plain(t *testing.T, b []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// Untagged reports what is wrong with the keys of a type and of all that it holds.
func Untagged(t reflect.Type) []string {
	var faults []string
	seen := map[reflect.Type]bool{}
	var look func(t reflect.Type, at string)
	look = func(t reflect.Type, at string) {
		switch {
		case seen[t], leaf(t):
			return
		case t.Kind() == reflect.Pointer, t.Kind() == reflect.Slice, t.Kind() == reflect.Array, t.Kind() == reflect.Map:
			look(t.Elem(), at)
			return
		case t == reflect.TypeFor[time.Duration]():
			faults = append(faults, at+" counts nanoseconds: make it a muster.Duration")
			return
		case t.Kind() == reflect.Interface:
			faults = append(faults, at+" may hold anything: say what")
			return
		case t.Kind() != reflect.Struct:
			return
		}
		seen[t] = true
		keys := map[string]bool{}
		for i := range t.NumField() {
			f := t.Field(i)
			if !f.IsExported() {
				continue
			}
			tag, ok := f.Tag.Lookup("json")
			key, _, _ := strings.Cut(tag, ",")
			switch {
			case key == "-":
				continue
			case f.Anonymous && !ok: // its fields are those of the struct around it
			case KeyFault(key, numeric(f.Type), whole(f.Type)) != "":
				faults = append(faults, t.String()+"."+f.Name+": "+key+" "+KeyFault(key, numeric(f.Type), whole(f.Type)))
			case keys[key]:
				faults = append(faults, t.String()+" has the key "+key+" twice")
			}
			keys[key] = true
			look(f.Type, t.String()+"."+f.Name)
		}
	}
	look(t, t.String())
	return faults
}

func whole(t reflect.Type) bool {
	return !leaf(t) && t.Kind() >= reflect.Int && t.Kind() <= reflect.Uint64
}

func numeric(t reflect.Type) bool {
	return whole(t) || t == reflect.TypeFor[muster.Duration]() || t.Kind() == reflect.Float64
}

// leaf reports whether a type says itself how it is written.
func leaf(t reflect.Type) bool {
	for _, i := range []reflect.Type{reflect.TypeFor[json.Marshaler](), reflect.TypeFor[encoding.TextMarshaler]()} {
		if t.Implements(i) {
			return true
		}
	}
	return false
}

// fill gives every field a value that follows from its place alone.
func fill(v reflect.Value, at string) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(at))
	n := int64(h.Sum32()%100 + 1)
	switch x := v.Addr().Interface().(type) {
	case *time.Time:
		*x = time.Date(2026, 1, 2, 3, 4, int(n%60), int(n), time.UTC)
		return
	case *netip.Addr:
		*x = netip.AddrFrom4([4]byte{192, 0, 2, byte(n)})
		return
	case *netip.Prefix:
		*x = netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(n)}), 24)
		return
	case *json.RawMessage:
		*x = json.RawMessage(`{"raw":` + strconv.FormatInt(n, 10) + `}`)
		return
	case *muster.Duration:
		*x = muster.Duration(time.Duration(n)*time.Second + time.Millisecond)
		return
	case *[]byte:
		*x = []byte(at)
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(n)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(n))
	case reflect.Float32, reflect.Float64:
		v.SetFloat(float64(n) + 0.5)
	case reflect.String:
		v.SetString(at[strings.LastIndexByte(at, '.')+1:])
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), at)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), at)
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), at)
		}
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, at+".key")
		fill(value, at)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if f.IsExported() && key != "-" {
				fill(v.Field(i), at+"."+key)
			}
		}
	}
}
