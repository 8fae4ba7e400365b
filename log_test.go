package muster_test

import (
	"go/ast"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// logMessages returns the messages of all log calls of the tree.
func logMessages(t *testing.T) map[string]bool {
	at := map[string]int{"Debug": 0, "Info": 0, "Warn": 0, "Error": 0, "DebugContext": 1, "InfoContext": 1, "WarnContext": 1, "ErrorContext": 1, "Log": 2}
	out := map[string]bool{}
	for _, files := range goFiles(t) {
		for _, f := range files {
			if strings.HasSuffix(f.name, "_test.go") {
				continue
			}
			ast.Inspect(f.ast, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				s, ok := call.Fun.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				// t.Error is that of a test, in a suite for tests of several packages.
				if x, ok := s.X.(*ast.Ident); ok && (x.Name == "t" || x.Name == "http") {
					return true
				}
				if i, ok := at[s.Sel.Name]; ok && len(call.Args) > i {
					if l, ok := call.Args[i].(*ast.BasicLit); ok && l.Kind == token.STRING {
						text, _ := strconv.Unquote(l.Value)
						out[text] = true
					}
				}
				return true
			})
		}
	}
	return out
}

// Log messages are short, constant and lower case, so that they can be searched.
func TestLogMessages(t *testing.T) {
	messages := logMessages(t)
	if len(messages) < 100 {
		t.Fatalf("%d messages were found", len(messages))
	}
	for m := range messages {
		first, _, _ := strings.Cut(m, " ")
		name := strings.IndexFunc(first, unicode.IsUpper) >= 0 // an acronym or a product
		switch {
		case m == "", len(m) > 72, strings.ContainsAny(m, ";.?!\n"):
			t.Errorf("%q is not a short phrase", m)
		case !unicode.IsLower([]rune(m)[0]) && !name:
			t.Errorf("%q does not begin in lower case", m)
		}
	}
}

// What docs/operators/operate.md says to search for is what is logged.
func TestDocumentedLogMessages(t *testing.T) {
	doc, err := os.ReadFile("docs/operators/operate.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(doc), "\n## Log messages\n")
	section, _, _ = strings.Cut(section, "\n## ")
	if !found {
		t.Fatal("docs/operators/operate.md has no section Log messages")
	}
	messages, count := logMessages(t), 0
	quoted := regexp.MustCompile("`([^`]+)`")
	for line := range strings.Lines(section) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 || !strings.Contains(cells[1], "`") || slices.Contains(cells, " `msg` ") {
			continue
		}
		for _, m := range quoted.FindAllStringSubmatch(cells[1], -1) {
			if count++; !messages[m[1]] {
				t.Errorf("docs/operators/operate.md names the message %q, which nothing logs", m[1])
			}
		}
	}
	if count < 50 {
		t.Errorf("%d messages are documented", count)
	}
}
