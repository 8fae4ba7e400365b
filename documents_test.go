package muster_test

import (
	"go/ast"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/muster-hpc/muster/internal/document"
	"github.com/muster-hpc/muster/internal/document/documenttest"
)

// writesOtherJSON are the files that write JSON which is no document, by what it is. What
// is kept is written by a document.Kind: see docs/internals/documents.md.
func writesOtherJSON() map[string][]string {
	return map[string][]string{
		"a document that says its version itself": {"certificate/envelope.go", "storage/image/manifest.go"},
		"what agents and servers say to each other": {
			"agent/boot/checkin.go", "agent/boot/root.go", "agent/client/client.go", "agent/seed.go", "agent/state.go",
			"nodes/agentserver/hosts.go", "nodes/agentserver/server.go", "wire/error.go", "metal/bootapi/handler.go", "cmd/muster-agent/conditions.go", "gateway/command.go",
			"provider/fake/measure.go", "provider/fake/remote.go", "provider/local/ensure.go", "provider/local/vm.go",
		},
		"what parts of one program say to each other": {
			"provider/fake/save.go",
			"agent/rendezvous/line.go", "agent/rendezvous/world.go", "agent/netbench/measure.go", "storage/image/isolate.go", "lab/machine/control.go",
			"provider/local/console.go", "provider/local/handshake.go", "provider/local/initstage.go",
			"vm/jail/order.go", "vm/supervisor/control.go", "vm/supervisor/stream.go", "vm/supervisor/order.go", "vm/supervisor/supervisor.go",
		},
		"the API, and what commands print": {
			"internal/replyjson/replyjson.go", "cli/create.go", "cli/report.go", "cli/template.go", "api/client/request.go", "control/spec/encode.go", "control/experiment/matrix.go", "control/experiments.go",
		},
		"protocols of others":                   {"vm/qmp/monitor.go", "metal/power/bmc/redfish.go", "metal/power/redfish/client.go", "metal/switches/script/switch.go"},
		"lines of nodes' journals":              {"nodes/agentserver/journal.go"},
		"what is compared, hashed or read once": {"certificate/canonical/canonical.go", "control/converge/decide_site.go", "control/gatewaydirectory.go", "nodes/nodeconf/generation.go", "storage/image/content.go", "pki/signing.go", "control/experiment/factor.go", "control/experiment/file.go"},
		"the documents":                         {"internal/document/document.go"},
	}
}

// Whatever writes JSON writes documents, or is known to write something else.
func TestOnlyDocumentsAreKept(t *testing.T) {
	other := map[string]bool{}
	for _, list := range writesOtherJSON() {
		for _, f := range list {
			other[f] = true
		}
	}
	for _, files := range goFiles(t) {
		for _, f := range files {
			if strings.HasSuffix(f.name, "_test.go") {
				continue
			}
			writes := false
			ast.Inspect(f.ast, func(n ast.Node) bool {
				writes = writes || isCall(n, "json", "Marshal") || isCall(n, "json", "MarshalIndent") || isCall(n, "json", "NewEncoder") || isCall(n, "canonical", "Marshal")
				return true
			})
			switch {
			case writes && !other[f.name]:
				t.Errorf("%s writes JSON: if it is kept, by a document.Kind; if not, say in writesOtherJSON what it is", f.name)
			case !writes && other[f.name]:
				t.Errorf("%s writes no JSON any more: take it out of writesOtherJSON", f.name)
			}
			delete(other, f.name)
		}
	}
	for f := range other {
		t.Errorf("%s is in writesOtherJSON and is not there", f)
	}
}

// Each kind of document is a constant of its own, with a golden document that a test of
// its package compares, and a row in the list for people.
func TestEveryDocumentIsKnown(t *testing.T) {
	text, err := os.ReadFile("docs/internals/documents.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := string(text)
	where := map[string]string{} // by kind: its package
	golden := map[string]bool{}
	for dir, files := range goFiles(t) {
		kinds, checked := map[string]string{}, map[string]bool{}
		for _, f := range files {
			test := strings.HasSuffix(f.name, "_test.go")
			ast.Inspect(f.ast, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.ValueSpec:
					if isKind(n.Type) && !test {
						for i, name := range n.Names {
							kinds[name.Name] = literal(n.Values, i)
						}
					}
				case *ast.CallExpr:
					if isKind(n.Fun) && !test {
						t.Errorf("%s makes a kind of document in the middle of code: make it a constant beside its type", f.name)
					}
					if isCall(n, "documenttest", "Check") && len(n.Args) == 2 {
						if id, ok := n.Args[1].(*ast.Ident); ok {
							checked[id.Name] = true
						}
					}
					if isCall(n, "documenttest", "CheckOwn") && dir != "internal/document/documenttest" {
						golden[dir+"/"+literal(n.Args, 1)] = true
					}
				}
				return true
			})
		}
		for name, kind := range kinds {
			if _, version := document.Split(kind); version == 0 {
				t.Errorf("%s: %s is %q, and should be a name and a version such as site/1", dir, name, kind)
			}
			if other, ok := where[kind]; ok {
				t.Errorf("%s and %s both have documents of kind %s", other, dir, kind)
			}
			where[kind] = dir
			if !checked[name] {
				t.Errorf("%s: no test calls documenttest.Check(t, %s)", dir, name)
			}
			path := filepath.Join(dir, documenttest.Dir, documenttest.Golden(kind))
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s has no golden document: MUSTER_UPDATE=1 go test ./%s -run TestDocuments", kind, dir)
			}
			if !slices.ContainsFunc(strings.Split(rows, "\n"), func(row string) bool {
				return strings.HasPrefix(row, "| `"+kind+"` |") && strings.HasSuffix(row, "| `"+dir+"` |")
			}) {
				t.Errorf("docs/internals/documents.md has no row for `%s` of %s", kind, dir)
			}
		}
	}
	if len(where) < 25 {
		t.Errorf("only %d kinds of documents were found: does this test still look for them where they are?", len(where))
	}
	for _, row := range strings.Split(rows, "\n") {
		if kind, ok := strings.CutPrefix(row, "| `"); ok {
			kind, _, _ = strings.Cut(kind, "`")
			if _, ok := where[kind]; !ok {
				t.Errorf("docs/internals/documents.md has a row for %s, of which there are no documents", kind)
			}
		}
	}
	noOrphans(t, where, golden)
}

// noOrphans finds golden documents of kinds that are no more.
func noOrphans(t *testing.T, where map[string]string, own map[string]bool) {
	t.Helper()
	known := map[string]bool{}
	for kind, dir := range where {
		known[filepath.Join(dir, documenttest.Dir, documenttest.Golden(kind))] = true
	}
	for dir := range goFiles(t) {
		list, _ := filepath.Glob(filepath.Join(dir, documenttest.Dir, "*.json")) // only a bad pattern fails
		for _, path := range list {
			name, _, _ := strings.Cut(filepath.Base(path), ".")
			name = name[:strings.LastIndexByte(name, '-')]
			if !known[path] && !own[dir+"/"+name] && dir != "internal/document" {
				t.Errorf("%s is of a kind that is no more", path)
			}
		}
	}
}

// isKind reports whether an expression is document.Kind[T].
func isKind(e ast.Expr) bool {
	x, ok := e.(*ast.IndexExpr)
	if !ok {
		return false
	}
	sel, ok := x.X.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	id, ok := sel.X.(*ast.Ident)
	return ok && id.Name == "document" && sel.Sel.Name == "Kind"
}

// literal is the text of a string constant in a list.
func literal(list []ast.Expr, i int) string {
	if i >= len(list) {
		return ""
	}
	lit, ok := list[i].(*ast.BasicLit)
	if !ok {
		return ""
	}
	s, _ := strconv.Unquote(lit.Value)
	return s
}
