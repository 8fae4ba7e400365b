package muster_test

import (
	"go/ast"
	"strings"
	"testing"
)

// Code acts on the code and the reason of an error, never on a sentence: those are for
// people, and change.
func TestNothingIsDecidedByASentence(t *testing.T) {
	searches := map[string]bool{"Contains": true, "HasPrefix": true, "HasSuffix": true, "EqualFold": true, "Index": true, "Cut": true}
	for dir, files := range goFiles(t) {
		top := strings.Split(dir, "/")[0]
		if top == "agent" || top == "lab" { // what programs of others print has no other form
			continue
		}
		for _, f := range files {
			if strings.HasSuffix(f.name, "_test.go") || strings.HasSuffix(dir, "test") {
				continue
			}
			ast.Inspect(f.ast, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok || len(call.Args) == 0 {
					return true
				}
				s, ok := call.Fun.(*ast.SelectorExpr)
				if !ok || !searches[s.Sel.Name] {
					return true
				}
				if x, ok := s.X.(*ast.Ident); !ok || x.Name != "strings" {
					return true
				}
				if sentence(call.Args[0]) {
					t.Errorf("%s searches the text of an error: ask for its reason", f.name)
				}
				return true
			})
		}
	}
}

// sentence reports whether an expression is the text of an error.
func sentence(e ast.Expr) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		found = found || ok && (s.Sel.Name == "Error" || s.Sel.Name == "Message" || s.Sel.Name == "Hint")
		return true
	})
	return found
}
