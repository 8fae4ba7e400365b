package muster_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
)

func TestReasonOf(t *testing.T) {
	refused := muster.Errorf(muster.ENoCapacity, "there is no room now")
	for _, c := range []struct {
		err  error
		want muster.Reason
	}{
		{nil, ""},
		{errors.New("x"), muster.ReasonInternal},
		{refused, muster.ReasonNoCapacity},
		{refused.Because(muster.ReasonNoRoom), muster.ReasonNoRoom},
		{fmt.Errorf("asked: %w", refused.Because(muster.ReasonNoRoom).WithHint("wait").Wrap(errors.New("y"))), muster.ReasonNoRoom},
		{&muster.Error{Code: muster.ENotFound, Message: "recorded by an older server"}, muster.ReasonNotFound},
	} {
		if got := muster.ReasonOf(c.err); got != c.want {
			t.Errorf("the reason of %v is %q, not %q", c.err, got, c.want)
		}
	}
	if refused.Reason != muster.ReasonNoCapacity {
		t.Errorf("Because changed the error that it was asked of: %q", refused.Reason)
	}
}

func TestReasonsOfProblems(t *testing.T) {
	e := muster.Errorf(muster.EInvalid, "the request has problems").Because(muster.ReasonHasProblems)
	nameless := muster.Problem{Field: "name", Reason: muster.ReasonRequired}
	odd := muster.Problem{Field: "nodes"}
	if one := e.Listing([]muster.Problem{nameless}); one.Reason != muster.ReasonRequired {
		t.Errorf("one problem alone gives the reason %q", one.Reason)
	}
	two := e.Listing([]muster.Problem{nameless, odd})
	if two.Reason != muster.ReasonHasProblems || two.Problems[1].Reason != muster.ReasonBadValue || odd.Reason != "" {
		t.Errorf("two problems give the reason %q, the second is %+v", two.Reason, two.Problems[1])
	}
	own := muster.Errorf(muster.EInvalid, "the recipe is wrong").Because(muster.ReasonBadRecipe)
	if own = own.Listing([]muster.Problem{nameless}); own.Reason != muster.ReasonBadRecipe {
		t.Errorf("an error with a reason of its own lost it to its problem: %q", own.Reason)
	}
}

// word is a constant that programs match: its group, its value, and what it means.
type word struct{ name, group, value, meaning string }

// words are the constants of a file of the dictionary, in their order. The name of a
// group is what its comment says before the colon or the period.
func words(t *testing.T, file string) []word {
	t.Helper()
	var list []word
	for _, f := range goFiles(t)[""] {
		if f.name != file {
			continue
		}
		for _, d := range f.ast.Decls {
			group, ok := d.(*ast.GenDecl)
			if !ok || group.Tok != token.CONST {
				continue
			}
			of := strings.Join(strings.Fields(group.Doc.Text())[2:], " ")
			of = of[:strings.IndexAny(of, ":.")]
			for _, s := range group.Specs {
				v := s.(*ast.ValueSpec)
				value, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				name := v.Names[0].Name
				meaning := strings.TrimSuffix(strings.TrimPrefix(strings.Join(strings.Fields(v.Doc.Text()), " "), name+": "), ".")
				list = append(list, word{name, of, value, meaning})
			}
		}
	}
	if len(list) < 40 {
		t.Fatalf("only %d words were found in %s", len(list), file)
	}
	return list
}

func TestReasonsAreWellFormed(t *testing.T) {
	form := regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)
	seen := map[string]bool{}
	for _, r := range words(t, "reason.go") {
		if !form.MatchString(r.value) || seen[r.value] || r.meaning == "" {
			t.Errorf("%s is %q, twice or without a meaning: %q", r.name, r.value, r.meaning)
		}
		seen[r.value] = true
	}
	for _, c := range []muster.Code{
		muster.EInvalid, muster.ENotFound, muster.EConflict, muster.EForbidden, muster.EUnauth, muster.ENever,
		muster.ENoCapacity, muster.ECorrupt, muster.EUnavailable, muster.ETimeout, muster.EInternal,
	} {
		if !seen[string(c.Reason())] {
			t.Errorf("code %s has no reason of its own name", c)
		}
	}
}

// The tables in docs are those of the source, and say nothing else.
func TestWordsAreDocumented(t *testing.T) {
	for _, c := range []struct{ source, file, what, head, group string }{
		{"reason.go", "docs/users/errors.md", "reasons", "| reason | comes with | meaning |", "`%s`"},
		{"condition.go", "docs/users/json.md", "conditions", "| code | whose | what is true |", "%s"},
	} {
		begin, end := "<!-- "+c.what+": MUSTER_UPDATE=1 go test . writes this table -->\n", "<!-- end of "+c.what+" -->\n"
		text, err := os.ReadFile(c.file)
		if err != nil {
			t.Fatal(err)
		}
		before, rest, ok := strings.Cut(string(text), begin)
		_, after, whole := strings.Cut(rest, end)
		if !ok || !whole {
			t.Fatalf("%s has no place for the table of %s", c.file, c.what)
		}
		var b strings.Builder
		b.WriteString(c.head + "\n|---|---|---|\n")
		for _, w := range words(t, c.source) {
			fmt.Fprintf(&b, "| `%s` | "+c.group+" | %s |\n", w.value, strings.TrimPrefix(w.group, "of "), w.meaning)
		}
		want := before + begin + b.String() + end + after
		switch {
		case want == string(text):
		case os.Getenv("MUSTER_UPDATE") == "":
			t.Errorf("%s does not list the %s as they are: MUSTER_UPDATE=1 go test .", c.file, c.what)
		default:
			if err := os.WriteFile(c.file, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A reason or a condition that nothing gives promises what never comes. One that is
// written as a text may be none, and an error that is written out field by field has
// no reason.
func TestWordsAreGiven(t *testing.T) {
	used, listed := map[string]bool{}, map[string]bool{}
	conditions := words(t, "condition.go")
	for _, w := range conditions {
		listed[w.value] = true
	}
	for _, files := range goFiles(t) {
		for _, f := range files {
			if forTests(f.name) || f.name == "reason.go" || f.name == "condition.go" {
				continue
			}
			ast.Inspect(f.ast, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.Ident:
					used[n.Name] = true
				case *ast.BinaryExpr:
					if s, ok := n.X.(*ast.SelectorExpr); ok && (s.Sel.Name == "Code" || s.Sel.Name == "Kind") && isOneOf(n.Y, listed) {
						t.Errorf("%s compares with the text %s: use its constant", f.name, n.Y.(*ast.BasicLit).Value)
					}
				case *ast.CompositeLit:
					field := map[string]string{"Condition": "Code", "Notice": "Code", "Audit": "Kind", "AuditFilter": "Kind", "Event": "Kind"}[typeName(n.Type)]
					for _, e := range n.Elts {
						if textOf(e, field) {
							t.Errorf("%s has a text for the %s of %s: use its constant", f.name, field, typeName(n.Type))
						}
						if inner, ok := e.(*ast.CompositeLit); ok && inner.Type == nil && typeName(n.Type) == "Condition" { // of a list
							for _, e := range inner.Elts {
								if textOf(e, field) {
									t.Errorf("%s has a text for the code of a condition: use its constant", f.name)
								}
							}
						}
					}
					if s, ok := n.Type.(*ast.SelectorExpr); ok && s.Sel.Name == "Error" && selects(s, "muster") && len(n.Elts) > 0 {
						t.Errorf("%s writes out an error: use muster.Errorf, which gives it a reason", f.name)
					}
				case *ast.CallExpr:
					for _, a := range n.Args {
						if strings.Contains(strings.ToLower(calledName(n)), "condition") && isOneOf(a, listed) {
							t.Errorf("%s asks %s for the text %s: use its constant", f.name, calledName(n), a.(*ast.BasicLit).Value)
						}
					}
					if s, ok := n.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "Because" && len(n.Args) == 1 && isText(n.Args[0]) {
						t.Errorf("%s gives a reason that is not a constant of reason.go", f.name)
					}
				}
				return true
			})
		}
	}
	for _, w := range conditions {
		if !used[w.name] {
			t.Errorf("nothing gives %s", w.name)
		}
	}
	for _, r := range words(t, "reason.go") {
		if !used[r.name] && string(muster.Code(r.group).Reason()) != r.value {
			t.Errorf("nothing gives %s", r.name)
		}
	}
}

func selects(s *ast.SelectorExpr, pkg string) bool {
	id, ok := s.X.(*ast.Ident)
	return ok && id.Name == pkg
}

func isText(e ast.Expr) bool {
	lit, ok := e.(*ast.BasicLit)
	return ok && lit.Kind == token.STRING
}

func isOneOf(e ast.Expr, list map[string]bool) bool {
	if !isText(e) {
		return false
	}
	value, err := strconv.Unquote(e.(*ast.BasicLit).Value)
	return err == nil && list[value]
}

func calledName(c *ast.CallExpr) string {
	switch f := c.Fun.(type) {
	case *ast.SelectorExpr:
		return f.Sel.Name
	case *ast.Ident:
		return f.Name
	}
	return ""
}

// typeName is the last word of the type of a literal, or of what it is a list of.
func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.ArrayType:
		return typeName(e.Elt)
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// textOf reports whether an element of a literal gives the field a text.
func textOf(e ast.Expr, field string) bool {
	kv, ok := e.(*ast.KeyValueExpr)
	if !ok {
		return false
	}
	key, ok := kv.Key.(*ast.Ident)
	return ok && field != "" && key.Name == field && isText(kv.Value)
}

// forTests reports whether a file is only there for tests.
func forTests(name string) bool {
	return strings.HasSuffix(name, "_test.go") || strings.Contains(name, "test/")
}
