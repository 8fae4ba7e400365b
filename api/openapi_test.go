package api_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/muster-hpc/muster/api"
)

const committed = "../docs/users/openapi.json"

// describe is the API's description of itself, indented.
func describe(t *testing.T) []byte {
	t.Helper()
	raw, err := api.New(api.Config{Version: "v1"}).OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := json.Indent(&out, raw, "", "  "); err != nil {
		t.Fatal(err)
	}
	out.WriteByte('\n')
	return out.Bytes()
}

// The committed description is the contract: a change of the API is a change
// of that file, which people see. MUSTER_UPDATE=1 writes it anew.
func TestCommittedDescriptionIsTrue(t *testing.T) {
	t.Parallel()
	now := describe(t)
	if os.Getenv("MUSTER_UPDATE") != "" {
		if err := os.WriteFile(committed, now, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	was, err := os.ReadFile(committed)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(was, now) {
		t.Fatal("docs/users/openapi.json is not what the API is now: MUSTER_UPDATE=1 go test ./api")
	}
}

func TestDescriptionHoldsTogether(t *testing.T) {
	t.Parallel()
	var doc struct {
		OpenAPI    string
		Paths      map[string]map[string]struct{ OperationID, Summary string }
		Components struct{ Schemas map[string]any }
	}
	raw := describe(t)
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(doc.OpenAPI, "3.1") {
		t.Errorf("version %s", doc.OpenAPI)
	}
	for path, methods := range doc.Paths {
		for method, op := range methods {
			if op.OperationID == "" || op.Summary == "" {
				t.Errorf("%s %s is not described", method, path)
			}
		}
	}
	for _, part := range strings.Split(string(raw), `"$ref": "#/components/schemas/`)[1:] {
		name, _, _ := strings.Cut(part, `"`)
		if doc.Components.Schemas[name] == nil {
			t.Errorf("schema %s is named and not there", name)
		}
	}
}
