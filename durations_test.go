package muster_test

import (
	"go/ast"
	"strings"
	"testing"
)

// What people write as a length of time is read by internal/duration, or by control/spec in
// requests: days and weeks are read wherever hours are.
func TestDurationsAreReadInOneWay(t *testing.T) {
	for dir, files := range goFiles(t) {
		for _, f := range files {
			if dir == "internal/duration" || strings.HasSuffix(f.name, "_test.go") || strings.Contains(f.name, "/testdata/") {
				continue
			}
			ast.Inspect(f.ast, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				if s, ok := call.Fun.(*ast.SelectorExpr); ok && (s.Sel.Name == "DurationVar" || s.Sel.Name == "DurationVarP" || isCall(n, "time", "ParseDuration")) {
					t.Errorf("%s reads a length of time with %s: use internal/duration", f.name, s.Sel.Name)
				}
				return true
			})
		}
	}
}
