package muster_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/muster-hpc/muster/internal/document/documenttest"
)

// foreign are the files whose JSON has the keys of others: of programs that are run, of
// protocols, and of the probe, which prints one line for each thing (decision 9). A recipe
// is only written to be hashed.
func foreign() []string {
	return []string{
		"agent/diskbench/", "agent/netbench/", "agent/journal/", "agent/rendezvous/", "vm/qmp/", "metal/switches/ovs/", "metal/power/bmc/", "metal/power/redfish/",
		"measure/analysis/line.go", "measure/hpl/read.go", "storage/image/content.go", "storage/image/recipe.go", "certificate/schema.go",
	}
}

// Every key of JSON that Muster writes keeps to the rules of docs/users/json.md.
func TestKeys(t *testing.T) {
	t.Parallel()
	seen := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && path != ".") {
			return fs.SkipDir
		}
		other := func(f string) bool { return strings.HasPrefix(path, f) }
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || slices.ContainsFunc(foreign(), other) {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			s, ok := n.(*ast.StructType)
			if !ok {
				return true
			}
			for _, field := range s.Fields.List {
				if key := keyOf(field); key != "" && key != "-" {
					seen++
					checkKey(t, path, key, field.Type)
				}
			}
			return true
		})
		return nil
	})
	if err != nil || seen < 1000 {
		t.Errorf("%d keys were seen, %v", seen, err)
	}
}

func keyOf(field *ast.Field) string {
	if field.Tag == nil {
		return ""
	}
	key, _, _ := strings.Cut(reflect.StructTag(strings.Trim(field.Tag.Value, "`")).Get("json"), ",")
	return key
}

func checkKey(t *testing.T, path, key string, kind ast.Expr) {
	t.Helper()
	name := baseName(kind)
	duration := strings.TrimPrefix(name, "muster.") == "Duration"
	whole := strings.HasPrefix(name, "int") || strings.HasPrefix(name, "uint")
	number := whole || duration || name == "float64" || strings.HasSuffix(name, "Quantity")
	if fault := documenttest.KeyFault(key, number, whole); fault != "" {
		t.Errorf("%s: %s %s", path, key, fault)
	}
	switch {
	case name == "time.Duration":
		t.Errorf("%s: %s is in nanoseconds: make it a muster.Duration", path, key)
	case duration && !strings.HasSuffix(key, "_seconds"):
		t.Errorf("%s: %s is a duration: end it in _seconds", path, key)
	}
}

// baseName is the name of a type without what holds several of it.
func baseName(e ast.Expr) string {
	switch x := e.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.SelectorExpr:
		return baseName(x.X) + "." + x.Sel.Name
	case *ast.StarExpr:
		return baseName(x.X)
	case *ast.ArrayType:
		return baseName(x.Elt)
	case *ast.MapType:
		return baseName(x.Value)
	}
	return ""
}
