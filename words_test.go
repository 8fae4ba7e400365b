package muster_test

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// retired is a row of the second table of docs/internals/words.md.
type retired struct {
	word, now string
	pkg       bool // only a package may not have it as its name
	match     *regexp.Regexp
}

// Retired words are not in names of packages, in the help of commands, in messages of
// logs and in headings of docs: the table says what is written instead.
func TestRetiredWords(t *testing.T) {
	texts := packageNames(t)
	for _, more := range [][]place{helpTexts(t), logTexts(t), docHeadings(t)} {
		if len(more) < 10 {
			t.Fatalf("only %d texts of a kind were found: %v", len(more), more)
		}
		texts = append(texts, more...)
	}
	for _, r := range retiredWords(t) {
		for _, p := range texts {
			if r.pkg && p.pkg && p.text == r.word || !r.pkg && r.in(p.text) {
				t.Errorf("%s: %q is retired, say %q: %s", p.where, r.word, r.now, strings.TrimSpace(p.text))
			}
		}
	}
}

// retiredWords reads the table.
func retiredWords(t *testing.T) []retired {
	t.Helper()
	_, table, ok := strings.Cut(readText(t, "docs/internals/words.md"), "\n| retired word | word used now | where |\n")
	if !ok {
		t.Fatal("docs/internals/words.md has no table of retired words")
	}
	var list []retired
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 3 || strings.HasPrefix(cells[0], "---") {
			continue
		}
		for i := range cells {
			cells[i] = strings.Trim(cells[i], " `")
		}
		word := cells[0]
		// The word itself, its plural and its third person, not a part of another word.
		match := regexp.MustCompile(`(?i)(^|[^\pL\pN-])` + regexp.QuoteMeta(word) + `(s|es)?($|[^\pL\pN-])`)
		list = append(list, retired{word, cells[1], cells[2] == "package", match})
	}
	if len(list) < 40 {
		t.Fatalf("only %d retired words were found", len(list))
	}
	return list
}

// in reports whether a text has the word. Most have not, and are not searched by pattern.
func (r retired) in(text string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(r.word)) && r.match.MatchString(text)
}

// place is a text and where it stands.
type place struct {
	where, text string
	pkg         bool // the name of a package
}

func packageNames(t *testing.T) []place {
	t.Helper()
	var list []place
	for _, files := range goFiles(t) {
		for _, f := range files {
			if !strings.HasSuffix(f.name, "_test.go") {
				list = append(list, place{f.name, f.ast.Name.Name, true})
				break
			}
		}
	}
	return list
}

// helpTexts are the lines of golden help and of the reference of commands.
func helpTexts(t *testing.T) []place {
	t.Helper()
	files, err := filepath.Glob("cli/testdata/*.golden")
	if err != nil || len(files) == 0 {
		t.Fatal("cli/testdata has no golden help", err)
	}
	var list []place
	for _, name := range append(files, "docs/users/cli.md") {
		n := 0
		for line := range strings.Lines(readText(t, name)) {
			n++
			list = append(list, place{where: name + ":" + strconv.Itoa(n), text: line})
		}
	}
	return list
}

// logTexts are the texts of calls such as log.Warn("...") and log.WarnContext(ctx, "...").
func logTexts(t *testing.T) []place {
	t.Helper()
	levels := []string{"Debug", "Info", "Warn", "Error"}
	var list []place
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
				sel, ok := call.Fun.(*ast.SelectorExpr)
				if !ok || !slices.Contains(levels, strings.TrimSuffix(sel.Sel.Name, "Context")) {
					return true
				}
				for _, arg := range call.Args {
					if s, ok := arg.(*ast.BasicLit); ok && s.Kind == token.STRING {
						list = append(list, place{where: f.name, text: s.Value})
						break
					}
				}
				return true
			})
		}
	}
	return list
}

func docHeadings(t *testing.T) []place {
	t.Helper()
	var list []place
	for _, page := range treeFiles(t, ".md") {
		if page == "CHANGELOG.md" { // tells of the past
			continue
		}
		for _, h := range headings(t, page) {
			list = append(list, place{where: page, text: h})
		}
	}
	return list
}

func readText(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
