package muster_test

import (
	"cmp"
	"go/ast"
	"go/token"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
)

// Of a provider that the server was started without, nothing good is assumed.
func TestUnknownProvider(t *testing.T) {
	t.Parallel()
	var none muster.Providers
	c := none.Of("gone")
	if !c.RootInMemory || c.Trust != muster.TrustNetwork || c.SharesHost || c.Simulated || c.Fabric != "gone" {
		t.Errorf("%+v", c)
	}
	a, b := &muster.Machine{Provider: "a"}, &muster.Machine{Provider: "b"}
	if none.Fabric(a) == none.Fabric(b) {
		t.Error("two providers on one fabric though nobody said so")
	}
	one := muster.Providers{"a": {Fabric: "hall"}, "b": {Fabric: "hall"}}
	if one.Fabric(a) != one.Fabric(b) {
		t.Error("two providers of one fabric are apart")
	}
}

// Code asks what a provider can do, and never which one it is: only its own package,
// and what puts the server together, know its name.
func TestNobodyAsksForAProvidersName(t *testing.T) {
	t.Parallel()
	for dir, files := range goFiles(t) {
		if strings.HasPrefix(dir, "provider/") || dir == "metal" || strings.HasPrefix(dir, "cmd/") || dir == "daemon/controltest" {
			continue
		}
		for _, f := range files {
			if strings.HasSuffix(f.name, "_test.go") {
				continue
			}
			ast.Inspect(f.ast, func(n ast.Node) bool {
				if name := comparedProvider(n); name != "" {
					t.Errorf("%s compares with the provider %s: ask for its Capabilities", f.name, name)
				}
				return true
			})
		}
	}
}

// comparedProvider is the name of a provider that an expression compares with, or keys
// a map by; "" otherwise.
func comparedProvider(n ast.Node) string {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		if n.Op == token.EQL || n.Op == token.NEQ {
			return cmp.Or(providerName(n.X), providerName(n.Y))
		}
	case *ast.KeyValueExpr:
		return providerName(n.Key)
	case *ast.CaseClause:
		for _, e := range n.List {
			if name := providerName(e); name != "" {
				return name
			}
		}
	}
	return ""
}

func providerName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		switch name := strings.Trim(e.Value, `"`); name {
		case "local", "fake", "metal":
			return name
		}
	case *ast.SelectorExpr:
		if id, ok := e.X.(*ast.Ident); ok && id.Name == "metal" && e.Sel.Name == "Name" {
			return "metal"
		}
	}
	return ""
}

// ownersElsewhere are the files that may say whose a machine is without giving it to
// anybody.
var ownersElsewhere = map[string]bool{
	"daemon/adoptput.go": true, // what machines prove to be
	"control/access.go":  true, // what is shown
	"control/machine.go": true, // what is shown
	"store/machine.go":   true, // what is read
}

// Exactly one package gives machines to nodes.
func TestOnePackageAllocates(t *testing.T) {
	t.Parallel()
	for dir, files := range goFiles(t) {
		if dir == "control/allocate" || dir == "store/storetest" {
			continue
		}
		for _, f := range files {
			if strings.HasSuffix(f.name, "_test.go") {
				continue
			}
			ast.Inspect(f.ast, func(n ast.Node) bool {
				a, ok := n.(*ast.AssignStmt)
				if !ok {
					return true
				}
				for _, e := range a.Rhs {
					if s, ok := e.(*ast.SelectorExpr); ok && s.Sel.Name == "MachineAllocated" {
						t.Errorf("%s gives a machine to a node: package allocate does that", f.name)
					}
				}
				if setsOwner(a) && !ownersElsewhere[f.name] {
					t.Errorf("%s says whose a machine is: package allocate does that", f.name)
				}
				return true
			})
		}
	}
}

// setsOwner reports whether something is assigned to both x.Cluster and x.Node which is
// not empty.
func setsOwner(a *ast.AssignStmt) bool {
	of := map[string]string{}
	for i, e := range a.Lhs {
		s, ok := e.(*ast.SelectorExpr)
		if !ok || len(a.Lhs) != len(a.Rhs) {
			continue
		}
		if v, ok := a.Rhs[i].(*ast.BasicLit); ok && v.Value == `""` {
			continue
		}
		if x, ok := s.X.(*ast.Ident); ok {
			of[s.Sel.Name] = x.Name
		}
	}
	return of["Cluster"] != "" && of["Cluster"] == of["Node"]
}
