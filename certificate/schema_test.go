package certificate_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/certificate"
)

const schemaFile = "../docs/users/certificate.schema.json"

// The published schema is what the types are: names, types, what may be left
// out, and what each field means. MUSTER_UPDATE=1 writes it anew.
func TestSchemaIsTrue(t *testing.T) {
	t.Parallel()
	now := writeSchema(t)
	if os.Getenv("MUSTER_UPDATE") != "" {
		must(t, os.WriteFile(schemaFile, now, 0o644))
		return
	}
	was, err := os.ReadFile(schemaFile)
	must(t, err)
	if !bytes.Equal(was, now) {
		t.Fatal("docs/users/certificate.schema.json is not what the types are now: MUSTER_UPDATE=1 go test ./certificate")
	}
}

func TestSchemaTakesCertificatesAndNothingElse(t *testing.T) {
	t.Parallel()
	var schema map[string]any
	must(t, json.Unmarshal(writeSchema(t), &schema))
	for _, c := range []muster.Certificate{node(), other(), manifest(t, node(), other())} {
		var v any
		must(t, json.Unmarshal(sign(t, c), &v))
		if wrong := mismatch(schema, schema, v, "$"); wrong != "" {
			t.Errorf("%s: %s", c.ID, wrong)
		}
	}
	good := string(sign(t, manifest(t, node(), other())))
	for was, is := range map[string]string{
		`"version":1`:                   `"version":2`,
		`"kind":"cluster"`:              `"kind":"rack"`,
		`"launches":6,`:                 ``,
		`"median":0.000008`:             `"median":"fast"`,
		`"certified":true,"class"`:      `"certified":"yes","class"`,
		`"made":"2026-03-01T12:00:00Z"`: `"made":"2026-03-01T13:00:00+01:00"`,
		`"possible":1`:                  `"possible":1.5`,
		`"digest":"sha256:`:             `"digest":"md5:`,
		`"signature":"`:                 `"sign":"`,
	} {
		var v any
		must(t, json.Unmarshal([]byte(strings.Replace(good, was, is, 1)), &v))
		if !strings.Contains(good, was) || mismatch(schema, schema, v, "$") == "" {
			t.Errorf("the schema takes %s in place of %s", is, was)
		}
	}
}

// Every field has its line in docs/users/certificate.md, and every line its field.
func TestFieldsAreExplained(t *testing.T) {
	t.Parallel()
	var schema struct {
		Defs map[string]struct {
			Properties map[string]any `json:"properties"`
		} `json:"$defs"`
	}
	must(t, json.Unmarshal(writeSchema(t), &schema))
	text, err := os.ReadFile("../docs/users/certificate.md")
	must(t, err)
	explained := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| (`[^|]*) \\|").FindAllStringSubmatch(string(text), -1) {
		for _, name := range regexp.MustCompile("`([a-z0-9_.-]+)`").FindAllStringSubmatch(m[1], -1) {
			explained[name[1]] = true
		}
	}
	known := map[string]bool{"key": true, "signature": true}
	for def, d := range schema.Defs {
		for name := range d.Properties {
			known[name] = true
			if !explained[name] {
				t.Errorf("docs/users/certificate.md does not say what %s of a %s is", name, def)
			}
		}
	}
	for f := range reflect.TypeFor[muster.TestEnvironment]().Fields() {
		known[muster.ConditionName(f)] = true // as comparisons name them
	}
	for r := range reasons() {
		known[string(r)] = true
		if !explained[string(r)] {
			t.Errorf("docs/users/certificate.md does not say what to do about %q", r)
		}
	}
	for name := range explained {
		if !known[name] && !strings.ContainsAny(name, ".0123456789") {
			t.Errorf("docs/users/certificate.md explains %q, which there is not", name)
		}
	}
}

func reasons() map[certificate.Reason]bool {
	out := map[certificate.Reason]bool{}
	for _, r := range []certificate.Reason{
		certificate.NotJSON, certificate.Malformed, certificate.TooNew, certificate.UnknownKey, certificate.KeyCompromised, certificate.KeyRetired,
		certificate.KeyNotYet, certificate.Altered, certificate.NotYetValid, certificate.Expired, certificate.Superseded, certificate.NodeMissing, certificate.NodeDiffers,
	} {
		out[r] = true
	}
	return out
}

// writeSchema makes the schema (JSON Schema 2020-12) from the types and their
// comments.
func writeSchema(t *testing.T) []byte {
	t.Helper()
	s := schemaWriter{docs: comments(t), defs: map[string]any{}}
	s.docs["parts"] = "A performance certificate in its envelope. The signature is of the canonical form (RFC 8785) of the member certificate: see docs/users/certificate.md. Fields are only ever added; ignore those that you do not know."
	root := s.object(reflect.TypeFor[struct {
		Certificate muster.Certificate `json:"certificate"`
		Key         muster.Digest      `json:"key"`
		Signature   string             `json:"signature"`
	}](), "parts")
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "Muster performance certificate"
	root["$defs"] = s.defs
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	must(t, enc.Encode(root))
	return b.Bytes()
}

type schemaWriter struct {
	docs map[string]string // by Type, Type.Field, and const:Type
	defs map[string]any
}

func (s schemaWriter) object(t reflect.Type, name string) map[string]any {
	properties, required := map[string]any{}, []string{}
	for i := range t.NumField() {
		f := t.Field(i)
		key, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		p := s.value(f.Type)
		if doc := s.docs[name+"."+f.Name]; doc != "" {
			p["description"] = doc
		}
		if key == "version" {
			p = map[string]any{"const": muster.CertificateVersion, "description": p["description"]}
		}
		properties[key] = p
		if !strings.Contains(options, "omit") {
			required = append(required, key)
		}
	}
	out := map[string]any{"type": "object", "properties": properties}
	if len(required) > 0 {
		slices.Sort(required)
		out["required"] = required
	}
	if doc := s.docs[name]; doc != "" {
		out["description"] = doc
	}
	return out
}

func (s schemaWriter) value(t reflect.Type) map[string]any {
	switch t {
	case reflect.TypeFor[time.Time]():
		return map[string]any{"type": "string", "format": "date-time", "pattern": `^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$`}
	case reflect.TypeFor[muster.CertificateID]():
		return map[string]any{"type": "string", "pattern": `^pc-[0-9a-z]{10}$`}
	case reflect.TypeFor[muster.Digest](), reflect.TypeFor[muster.ImageID]():
		return map[string]any{"type": "string", "pattern": `^sha256:[0-9a-f]{64}$`}
	case reflect.TypeFor[muster.Grade]():
		return map[string]any{"type": "string", "enum": muster.Grades()}
	case reflect.TypeFor[muster.CertificateKind]():
		return map[string]any{"type": "string", "enum": []muster.CertificateKind{muster.CertifiesNode, muster.CertifiesCluster}}
	case reflect.TypeFor[muster.Validation]():
		return map[string]any{"type": "string", "enum": []muster.Validation{muster.ValidateQuick, muster.ValidateFull}}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.value(t.Elem())
	case reflect.Slice:
		return map[string]any{"type": "array", "items": s.value(t.Elem())}
	case reflect.Struct:
		if _, ok := s.defs[t.Name()]; !ok {
			s.defs[t.Name()] = nil // not twice
			s.defs[t.Name()] = s.object(t, t.Name())
		}
		return map[string]any{"$ref": "#/$defs/" + t.Name()}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int, reflect.Int64:
		return map[string]any{"type": "integer"}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.String:
		return map[string]any{"type": "string"}
	}
	panic(fmt.Sprintf("no schema for %s", t))
}

// comments are what the dictionary says of its types and their fields.
func comments(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	files, err := filepath.Glob("../*.go")
	must(t, err)
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		must(t, err)
		for _, d := range file.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.TYPE {
				continue
			}
			for _, spec := range g.Specs {
				typ := spec.(*ast.TypeSpec)
				fields, ok := typ.Type.(*ast.StructType)
				if !ok {
					continue
				}
				out[typ.Name.Name] = prose(g.Doc)
				for _, f := range fields.Fields.List {
					for _, n := range f.Names {
						out[typ.Name.Name+"."+n.Name] = strings.TrimSpace(prose(f.Doc) + " " + prose(f.Comment))
					}
				}
			}
		}
	}
	return out
}

func prose(c *ast.CommentGroup) string { return strings.Join(strings.Fields(c.Text()), " ") }

// mismatch reports where a value is not what a schema says; it knows as much of
// JSON Schema as writeSchema writes.
func mismatch(root, schema map[string]any, v any, at string) string {
	if ref, ok := schema["$ref"].(string); ok {
		def, _ := root["$defs"].(map[string]any)[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
		return mismatch(root, def, v, at)
	}
	if want, ok := schema["const"]; ok && want != v {
		return fmt.Sprintf("%s is %v, not %v", at, v, want)
	}
	if list, ok := schema["enum"].([]any); ok && !slices.Contains(list, v) {
		return fmt.Sprintf("%s is %v, none of %v", at, v, list)
	}
	switch kind := schema["type"]; v := v.(type) {
	case map[string]any:
		if kind != "object" {
			return at + " is an object"
		}
		required, _ := schema["required"].([]any)
		for _, name := range required {
			if _, ok := v[name.(string)]; !ok {
				return fmt.Sprintf("%s lacks %s", at, name)
			}
		}
		for name, p := range schema["properties"].(map[string]any) {
			if part, ok := v[name]; ok {
				if wrong := mismatch(root, p.(map[string]any), part, at+"."+name); wrong != "" {
					return wrong
				}
			}
		}
		for name := range v {
			if _, ok := schema["properties"].(map[string]any)[name]; !ok {
				return fmt.Sprintf("%s has %s, which the schema does not know", at, name)
			}
		}
	case []any:
		if kind != "array" {
			return at + " is a list"
		}
		for i, part := range v {
			if wrong := mismatch(root, schema["items"].(map[string]any), part, fmt.Sprintf("%s[%d]", at, i)); wrong != "" {
				return wrong
			}
		}
	case string:
		pattern, _ := schema["pattern"].(string)
		if kind != "string" || !regexp.MustCompile(pattern).MatchString(v) {
			return fmt.Sprintf("%s is %q", at, v)
		}
	case float64:
		if kind != nil && kind != "number" && (kind != "integer" || v != math.Trunc(v)) {
			return fmt.Sprintf("%s is the number %v", at, v)
		}
	case bool:
		if kind != "boolean" {
			return fmt.Sprintf("%s is %v", at, v)
		}
	default:
		return fmt.Sprintf("%s is %v", at, v)
	}
	return ""
}
