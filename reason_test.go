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

// reasonConst is one reason as reason.go has it.
type reasonConst struct{ name, code, value, meaning string }

func reasonConsts(t *testing.T) []reasonConst {
	t.Helper()
	var list []reasonConst
	for _, f := range goFiles(t)[""] {
		if f.name != "reason.go" {
			continue
		}
		for _, d := range f.ast.Decls {
			group, ok := d.(*ast.GenDecl)
			if !ok || group.Tok != token.CONST {
				continue
			}
			code, _, _ := strings.Cut(strings.TrimPrefix(group.Doc.Text(), "Reasons of "), ":")
			for _, s := range group.Specs {
				v := s.(*ast.ValueSpec)
				value, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				name := v.Names[0].Name
				meaning := strings.TrimSuffix(strings.TrimPrefix(strings.Join(strings.Fields(v.Doc.Text()), " "), name+": "), ".")
				list = append(list, reasonConst{name, code, value, meaning})
			}
		}
	}
	if len(list) < 100 {
		t.Fatalf("only %d reasons were found in reason.go", len(list))
	}
	return list
}

func TestReasonsAreWellFormed(t *testing.T) {
	form := regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)
	seen := map[string]bool{}
	for _, r := range reasonConsts(t) {
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

// The table of docs/errors.md is that of reason.go, and says nothing else.
func TestReasonsAreDocumented(t *testing.T) {
	const file, begin, end = "docs/errors.md", "<!-- reasons: MUSTER_UPDATE=1 go test . writes this table -->\n", "<!-- end of reasons -->\n"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, whole := strings.Cut(rest, end)
	if !ok || !whole {
		t.Fatalf("%s has no place for the table of reasons", file)
	}
	var b strings.Builder
	b.WriteString("| reason | comes with | meaning |\n|---|---|---|\n")
	for _, r := range reasonConsts(t) {
		fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", r.value, r.code, r.meaning)
	}
	want := before + begin + b.String() + end + after
	if want == string(text) {
		return
	}
	if os.Getenv("MUSTER_UPDATE") == "" {
		t.Fatalf("%s does not list the reasons as they are: MUSTER_UPDATE=1 go test .", file)
	}
	if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// A reason that nothing gives promises what never comes. One that is written as a text
// may be none, and an error that is written out field by field has none.
func TestReasonsAreGiven(t *testing.T) {
	used := map[string]bool{}
	for _, files := range goFiles(t) {
		for _, f := range files {
			if strings.HasSuffix(f.name, "_test.go") || f.name == "reason.go" {
				continue
			}
			ast.Inspect(f.ast, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.Ident:
					used[n.Name] = true
				case *ast.CompositeLit:
					if s, ok := n.Type.(*ast.SelectorExpr); ok && s.Sel.Name == "Error" && selects(s, "muster") && len(n.Elts) > 0 {
						t.Errorf("%s writes out an error: use muster.Errorf, which gives it a reason", f.name)
					}
				case *ast.CallExpr:
					if s, ok := n.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "Because" && len(n.Args) == 1 && isText(n.Args[0]) {
						t.Errorf("%s gives a reason that is not a constant of reason.go", f.name)
					}
				}
				return true
			})
		}
	}
	for _, r := range reasonConsts(t) {
		if !used[r.name] && string(muster.Code(r.code).Reason()) != r.value {
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
