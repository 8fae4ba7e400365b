package muster_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/muster-hpc/muster"

// folder is one folder of the listing: the folders, or single packages of them, that it
// may import, and why. Every package may import the dictionary (the root) and internal/.
type folder struct {
	name    string
	imports []string
	reason  string
}

// folders are the architecture: a folder imports only folders above it in this list. A new
// folder is added here first, and to ARCHITECTURE.md.
func folders() []folder {
	return []folder{
		{"internal", nil, "leaves named for what they are; they know the dictionary at most"},
		{"wire", nil, "messages are nouns of the dictionary, and nothing else"},
		{"certificate", nil, "strangers verify certificates without a server"},
		{"pki", []string{"certificate", "wire"}, "signs certificates, and vouches for machines by messages"},
		{"vm", nil, "virtual machines on a host: how one is set up, and QEMU as a program of the host; what a machine is told is bytes here"},
		{"agent", []string{"wire", "pki/attest", "vm/host"}, "runs on a tenant's machine: no server code; both sides of an attestation are one package; what a host has for virtual machines is among its facts"},
		{"store", []string{"certificate"}, "keeps records and certificates"},
		{"measure", []string{"certificate", "wire", "pki", "store"}, "launches, judges, signs and files measurements"},
		{"storage", []string{"wire", "store", "measure/probes", "measure/programs", "agent/units"}, "volumes are on record; images have the probe and the built-in programs compiled in, and leave out what is placed in a node's root"},
		{"provider", []string{"wire", "agent/client", "agent/units", "agent/wipe", "vm"}, "simulated machines speak as agents do; local ones start the agent's unit, or QEMU, say what their host has for virtual machines, and erase disks that these had"},
		{"metal", []string{"wire", "provider", "pki/attest"}, "a provider whose machines prove who they are"},
		{"nodes", []string{"wire", "pki", "store", "vm/qemu"}, "answers agents, and renders what they apply; a virtual machine's QEMU takes a part of its memory"},
		{"control", []string{"wire", "pki", "store", "storage", "provider", "measure/analysis", "measure/compare", "metal/enrollment", "metal/factsdiff", "vm/plan", "vm/qemu", "vm/save"}, "decides; knows what measurements say of peaks and changes, and of bare machines only what they are made of"},
		{"gateway", []string{"wire"}, "an SSH server in front of control, which it knows as an interface"},
		{"api", []string{"wire", "pki", "control/spec"}, "REST in front of control, which it knows as an interface"},
		{"lab", []string{"vm", "control/spec", "provider/local/network", "metal/switches"}, "a rack of virtual machines, with the switch and the network of real ones; speaks with QEMU as tenants' supervisors do"},
		{"cli", []string{"wire", "api/client", "certificate", "control/spec", "control/simulate", "control/topology", "measure/programs/kit", "metal/inventory", "storage/image", "vm/host"}, "reaches a server only through its client; simulates and checks a host without one, draws where machines stand, and packs programs for other clusters"},
		{"daemon", []string{"wire", "pki", "store", "vm/save", "measure", "storage", "provider", "metal", "nodes", "control", "gateway", "api"}, "puts the server together"},
		{"cmd", []string{"wire", "agent", "measure", "storage", "provider", "metal", "control", "gateway", "api/client", "lab", "vm", "cli", "daemon"}, "the programs; a gateway of its own process is a client of the API"},
		{"scripts", nil, "helpers of benchmarks"},
	}
}

func TestImportsPointDownwards(t *testing.T) {
	list := folders()
	position := map[string]int{}
	for i, f := range list {
		position[f.name] = i
	}
	for i, f := range list {
		for _, imp := range f.imports {
			if p, ok := position[strings.Split(imp, "/")[0]]; !ok || p >= i {
				t.Errorf("%s may import %s, which does not stand above it", f.name, imp)
			}
		}
	}
	used := map[string]bool{}
	for dir, files := range goFiles(t) {
		top := strings.Split(dir, "/")[0]
		at, known := position[top]
		if !known && top != "" {
			t.Errorf("folder %q is not known: add it to folders() and to ARCHITECTURE.md", top)
			continue
		}
		for _, f := range files {
			if strings.HasSuffix(f.name, "_test.go") {
				continue // tests may look at anything
			}
			for _, imp := range f.ast.Imports {
				path := strings.Trim(imp.Path.Value, `"`)
				target := strings.TrimPrefix(path, module+"/")
				to := strings.Split(target, "/")[0]
				switch {
				case path == module || !strings.HasPrefix(path, module+"/"):
				case top == "":
					t.Errorf("%s imports %s: the dictionary imports nothing of the project", f.name, path)
				case to == top || to == "internal":
				default:
					allowed := slices.IndexFunc(list[at].imports, func(p string) bool { return target == p || strings.HasPrefix(target, p+"/") })
					if allowed < 0 {
						t.Errorf("%s imports %s, but %s may not (%s): declare the small interface you need and let daemon pass it", f.name, path, top, list[at].reason)
						continue
					}
					used[top+" "+list[at].imports[allowed]] = true
				}
			}
		}
	}
	for _, f := range list {
		for _, imp := range f.imports {
			if !used[f.name+" "+imp] {
				t.Errorf("%s imports nothing of %s any more: take it out of folders()", f.name, imp)
			}
		}
	}
}

func TestHouseRules(t *testing.T) {
	for dir, files := range goFiles(t) {
		documented := false
		for _, f := range files {
			documented = documented || (f.ast.Doc != nil && len(f.ast.Doc.Text()) > 40)
			if strings.HasSuffix(f.name, "_test.go") {
				continue
			}
			if strings.HasSuffix(f.ast.Name.Name, "util") || strings.HasSuffix(f.ast.Name.Name, "utils") {
				t.Errorf("%s: a package is named for what it is, not util", f.name)
			}
			for _, decl := range f.ast.Decls {
				switch d := decl.(type) {
				case *ast.FuncDecl:
					if d.Name.Name == "init" && d.Recv == nil {
						t.Errorf("%s: init runs before main and cannot be tested or refused: make it a call", f.name)
					}
					if !strings.HasPrefix(dir, "cmd/") {
						ast.Inspect(d, func(n ast.Node) bool {
							if isCall(n, "os", "Exit") {
								t.Errorf("%s: %s calls os.Exit: return an error", f.name, d.Name.Name)
							}
							return true
						})
					}
				case *ast.GenDecl:
					if d.Tok == token.VAR {
						for _, s := range d.Specs {
							checkGlobal(t, f.name, s.(*ast.ValueSpec))
						}
					}
				}
			}
		}
		if !documented {
			t.Errorf("package %q has no package comment", dir)
		}
	}
}

// checkGlobal allows package variables that nothing can sensibly change:
// embedded files, compiled patterns, error sentinels and interface assertions.
// Tables are functions.
func checkGlobal(t *testing.T, file string, v *ast.ValueSpec) {
	for i, name := range v.Names {
		if name.Name == "_" {
			continue
		}
		if i < len(v.Values) {
			if call, ok := v.Values[i].(*ast.CallExpr); ok {
				call = unchained(call)
				if isCall(call, "regexp", "MustCompile") || isCall(call, "errors", "New") || isCall(call, "muster", "Errorf") {
					continue
				}
			}
		}
		if v.Values == nil { // //go:embed, or set by the linker
			if sel, ok := v.Type.(*ast.SelectorExpr); ok && sel.Sel.Name == "FS" {
				continue
			}
			if id, ok := v.Type.(*ast.Ident); ok && id.Name == "string" {
				continue
			}
			if _, ok := v.Type.(*ast.ArrayType); ok {
				continue
			}
		}
		t.Errorf("%s: package variable %s: pass it, or make it a constant or a function", file, name.Name)
	}
}

// unchained is the first call of a chain of methods: a().b().c().
func unchained(call *ast.CallExpr) *ast.CallExpr {
	if s, ok := call.Fun.(*ast.SelectorExpr); ok {
		if first, ok := s.X.(*ast.CallExpr); ok {
			return unchained(first)
		}
	}
	return call
}

func isCall(n ast.Node, pkg, fn string) bool {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return false
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	id, ok := sel.X.(*ast.Ident)
	return ok && id.Name == pkg && sel.Sel.Name == fn
}

type goFile struct {
	name string
	ast  *ast.File
}

// goFiles parses every Go file of the tree, by directory ("" is the root).
func goFiles(t *testing.T) map[string][]goFile {
	t.Helper()
	out := map[string][]goFile{}
	fset := token.NewFileSet()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if path != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "bin") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(fset, path, src, parser.ParseComments)
		if err != nil {
			return err
		}
		dir := filepath.Dir(path)
		if dir == "." {
			dir = ""
		}
		out[dir] = append(out[dir], goFile{path, file})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
