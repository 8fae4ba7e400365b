package api

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"github.com/danielgtaylor/huma/v2"
)

// Whatever a use case returns, no list of a reply is null, and the description says so.
func TestListsAreNeverNull(t *testing.T) {
	t.Parallel()
	a := New(Config{Version: "v1"})
	doc := a.huma.OpenAPI()
	schemas := doc.Components.Schemas.Map()
	asked := map[string]bool{}
	replies, lists := 0, 0
	for route, path := range doc.Paths {
		for _, op := range []*huma.Operation{path.Get, path.Put, path.Post, path.Patch, path.Delete} {
			if op == nil {
				continue
			}
			if op.RequestBody != nil {
				for _, media := range op.RequestBody.Content {
					reachable(schemas, media.Schema, asked)
				}
			}
			for status, r := range op.Responses {
				media := r.Content["application/json"]
				if media == nil || media.Schema.Ref == "" {
					continue
				}
				replies++
				of := doc.Components.Schemas.TypeFromRef(media.Schema.Ref)
				// One with every list nil, as a use case that forgot them all returns it.
				value := reflect.New(of)
				fill(value.Elem(), map[reflect.Type]bool{})
				var out bytes.Buffer
				if err := a.huma.Marshal(&out, "application/json", value.Interface()); err != nil {
					t.Fatalf("%s %s: %v", route, status, err)
				}
				var got any
				if err := json.Unmarshal(out.Bytes(), &got); err != nil {
					t.Fatal(err)
				}
				lists += checkNull(t, schemas, media.Schema, got, route)
			}
		}
	}
	for name, s := range schemas {
		for key, p := range s.Properties {
			if !asked[name] && p.Type == huma.TypeArray && p.Nullable {
				t.Errorf("%s.%s may be null, says the description", name, key)
			}
		}
	}
	if replies < 60 || lists < 60 {
		t.Errorf("only %d replies with %d lists were looked at", replies, lists)
	}
}

// fill makes every pointer of a value lead somewhere, so that the lists behind it are seen.
func fill(v reflect.Value, within map[reflect.Type]bool) {
	switch v.Kind() {
	case reflect.Pointer:
		if within[v.Type()] || !v.CanSet() || v.Type().Elem().Kind() != reflect.Struct {
			return
		}
		within[v.Type()] = true
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), within)
		delete(within, v.Type())
	case reflect.Struct:
		for _, f := range v.Fields() {
			fill(f, within)
		}
	}
}

// checkNull compares a reply with its schema, and counts the lists.
func checkNull(t *testing.T, schemas map[string]*huma.Schema, s *huma.Schema, got any, at string) (lists int) {
	t.Helper()
	if s.Ref != "" {
		s = schemas[s.Ref[len("#/components/schemas/"):]]
	}
	if s.Type == huma.TypeArray {
		if got == nil {
			t.Errorf("%s is null", at)
		}
		return 1
	}
	object, _ := got.(map[string]any)
	for key, p := range s.Properties {
		value, there := object[key]
		if !there && !slices.Contains(s.Required, key) {
			continue
		}
		lists += checkNull(t, schemas, p, value, at+"."+key)
	}
	return lists
}
