package api_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/muster-hpc/muster/internal/document/documenttest"
)

// schema is as much of a schema as the contract speaks of.
type schema struct {
	Type       any
	Ref        string `json:"$ref"`
	Properties map[string]schema
	Items      *schema
	Required   []string
}

func (s schema) is(types ...string) bool {
	for _, t := range types {
		list, _ := s.Type.([]any)
		if s.Type == t || slices.Contains(list, any(t)) {
			return true
		}
	}
	return false
}

type operation struct {
	OperationID string
	Parameters  []struct{ Name, In string }
	Responses   map[string]struct {
		Content map[string]struct{ Schema schema }
	}
}

type openAPI struct {
	Paths      map[string]map[string]operation
	Components struct{ Schemas map[string]schema }
}

func contract(t *testing.T) openAPI {
	t.Helper()
	var doc openAPI
	if err := json.Unmarshal(describe(t), &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// Every key of the API keeps to the rules of docs/users/json.md.
func TestKeysKeepToTheRules(t *testing.T) {
	t.Parallel()
	doc := contract(t)
	for name, s := range doc.Components.Schemas {
		for key, p := range s.Properties {
			if p.is("array") && p.Items != nil {
				p = *p.Items
			}
			quantity := strings.HasSuffix(p.Ref, "/Quantity")
			if fault := documenttest.KeyFault(key, quantity || p.is("integer", "number"), p.is("integer")); fault != "" {
				t.Errorf("%s.%s %s", name, key, fault)
			}
		}
	}
	for path, methods := range doc.Paths {
		for _, op := range methods {
			for _, p := range op.Parameters {
				if fault := documenttest.KeyFault(p.Name, false, false); p.In == "query" && fault != "" {
					t.Errorf("%s: parameter %s %s", path, p.Name, fault)
				}
			}
		}
	}
}

// notLists are the routes whose reply is about one thing, of which some parts are several,
// or about one stretch of time.
func notLists() []string {
	return []string{
		"server", "health", "site-top", "cluster-top", "usage", "site-usage", "compare", "history", "mixes", "logs",
		"show-cluster", "show-machine", "machine-topology", "machine-plan", "show-image", "compare-images", "show-user", "show-volume", "show-certificate", "calendar", "show-project", "show-course", "show-run", "run-job",
		"show-platform", "compare-platforms", "show-experiment", "show-gateway", "show-topology", "import-topology",
	}
}

// Every list has pages.
func TestListsHavePages(t *testing.T) {
	t.Parallel()
	doc := contract(t)
	lists := 0
	for path, methods := range doc.Paths {
		op, ok := methods["get"]
		if !ok || slices.Contains(notLists(), op.OperationID) {
			continue
		}
		reply := op.Responses["200"].Content["application/json"].Schema
		if reply.Ref != "" {
			reply = doc.Components.Schemas[reply.Ref[strings.LastIndexByte(reply.Ref, '/')+1:]]
		}
		if !slices.ContainsFunc(slices.Collect(maps.Values(reply.Properties)), func(s schema) bool { return s.is("array") }) {
			continue
		}
		lists++
		for _, want := range []string{"limit", "after"} {
			if !slices.ContainsFunc(op.Parameters, func(p struct{ Name, In string }) bool { return p.Name == want && p.In == "query" }) {
				t.Errorf("%s (%s) is a list and does not take %s", path, op.OperationID, want)
			}
		}
		if _, ok := reply.Properties["next"]; !ok {
			t.Errorf("%s (%s) is a list and does not say what comes next", path, op.OperationID)
		}
	}
	if lists < 11 {
		t.Errorf("only %d lists were found", lists)
	}
}
