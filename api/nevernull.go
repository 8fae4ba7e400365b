package api

import (
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// neverNull describes the lists of replies as what they are: [] where there is nothing.
// Lists of requests may be null.
func neverNull(doc *huma.OpenAPI) {
	schemas := doc.Components.Schemas.Map()
	asked := map[string]bool{}
	for _, path := range doc.Paths {
		for _, op := range []*huma.Operation{path.Get, path.Put, path.Post, path.Patch, path.Delete} {
			if op == nil || op.RequestBody == nil {
				continue
			}
			for _, media := range op.RequestBody.Content {
				reachable(schemas, media.Schema, asked)
			}
		}
	}
	for name, s := range schemas {
		if !asked[name] {
			withoutNull(s)
		}
	}
}

// reachable notes the names of all schemas that one leads to.
func reachable(schemas map[string]*huma.Schema, s *huma.Schema, seen map[string]bool) {
	if s == nil {
		return
	}
	if name := strings.TrimPrefix(s.Ref, "#/components/schemas/"); s.Ref != "" && !seen[name] {
		seen[name] = true
		reachable(schemas, schemas[name], seen)
	}
	reachable(schemas, s.Items, seen)
	for _, p := range s.Properties {
		reachable(schemas, p, seen)
	}
	if more, ok := s.AdditionalProperties.(*huma.Schema); ok {
		reachable(schemas, more, seen)
	}
}

func withoutNull(s *huma.Schema) {
	if s == nil {
		return
	}
	if s.Type == huma.TypeArray {
		s.Nullable = false
	}
	withoutNull(s.Items)
	for _, p := range s.Properties {
		withoutNull(p)
	}
	if more, ok := s.AdditionalProperties.(*huma.Schema); ok {
		withoutNull(more)
	}
}
