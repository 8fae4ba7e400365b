package muster_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const module = "github.com/muster-hpc/muster"

// layers says where each package stands. A package imports only packages of
// lower layers; the reasons are in ARCHITECTURE.md. A new package is added
// here first.
func layers() map[string]int {
	return map[string]int{
		"nearest": 0, "wildcard": 0, "nodeset": 0, "stat": 0, "canonical": 0, "seccomp": 0, "cleantext": 0, "inherit": 0, "rootfs": 0,
		"internal/ratelimit": 0, "internal/backoff": 0, "internal/atomicfile": 0, "internal/plaintext": 0,
		"": 10, "wire": 11, "document": 11, "document/documenttest": 30,
		"certificate": 15, "certificate/page": 16, "spec": 20, "store": 20, "pki": 20, "admit": 20, "place": 20, "allocate": 25, "slurm": 20, "nodeconf": 20,
		"network": 20, "image": 20, "client": 20, "volume": 20, "series": 20, "validate": 20, "provider": 20, "hpl": 20, "inventory": 20, "approval": 20, "images": 19, "trend": 19, "probes": 18,
		"volume/export": 20, "power/rmcp": 19, "power": 20, "power/bmc": 20, "power/wol": 21, "power/ipmi": 21, "power/redfish": 21, "power/script": 21, "power/drivers": 22, "power/powertest": 30,
		"netboot/dhcp": 20, "netboot/tftp": 20, "netboot/web": 20, "netboot/rack": 20, "netboot/ra": 20, "netboot": 21,
		"attest": 15, "hardware": 15, "yamldoc": 15, "loopdev": 10, "procstat": 0, "lockfile": 10, "connlimit": 10, "backup": 20, "initramfs": 20, "bootdesk": 20,
		"store/storetest": 30, "volume/volumetest": 30,
		"provider/local": 30, "provider/metal": 30, "provider/metal/wiring": 30, "provider/local/fault": 30, "provider/fake": 30, "provider/providertest": 30,
		"converge": 30, "measure": 30, "agents": 30, "control": 30, "api": 30, "cli": 30,
		"netswitch": 20, "netswitch/ovs": 21, "netswitch/switchtest": 30,
		"lab/process": 19, "lab/sleep": 20, "lab/qemu": 20, "lab/vswitch": 30, "lab/machine": 30, "lab": 40,
		"daemon": 40, "control/controltest": 40,
		"cmd/muster": 50, "scripts/flood": 50,

		// The agent runs on a tenant's machine: the dictionary, the messages
		// and its own packages, no server code. The fake provider runs real
		// agents, so the agent's library stands low.
		"agent/configure": 12, "agent/conditions": 12, "agent/facts": 12, "agent/boot": 12, "agent/units": 12, "agent/drive": 12, "agent/trial": 12, "agent/scratch": 12, "agent/smart": 12, "agent/usage": 12, "agent/journal": 12, "agent/link": 12, "agent/launch": 12, "agent/tool": 12, "agent/ranks": 12, "agent/disk": 12, "agent/sockets": 12,
		"agent": 13, "cmd/muster-agent": 50,
	}
}

// agentMayImport are the only packages of the project linked into the agent.
// attest has both sides of an exchange, so that they agree. What is internal is a leaf.
func agentMayImport(path string) bool {
	return path == "" || path == "wire" || path == "document" || path == "nodeset" || path == "attest" || path == "wildcard" || path == "cleantext" || path == "loopdev" || strings.HasPrefix(path, "internal/") || strings.HasPrefix(path, "agent")
}

func TestImportsPointDownwards(t *testing.T) {
	known := layers()
	for dir, files := range goFiles(t) {
		layer, ok := known[dir]
		if !ok {
			t.Errorf("package %q has no layer: add it to layers() in layers_test.go and to ARCHITECTURE.md", dir)
			continue
		}
		for _, f := range files {
			if strings.HasSuffix(f.name, "_test.go") {
				continue // tests may look at anything
			}
			for _, imp := range f.ast.Imports {
				path := strings.Trim(imp.Path.Value, `"`)
				if path != module && !strings.HasPrefix(path, module+"/") {
					continue
				}
				target := strings.TrimPrefix(strings.TrimPrefix(path, module), "/")
				isAgent := strings.HasPrefix(dir, "agent/") || dir == "agent" || dir == "cmd/muster-agent"
				if strings.HasPrefix(dir, "internal/") {
					t.Errorf("%s imports %s: what is internal is a leaf, and imports nothing of the project", f.name, path)
				}
				switch {
				case isAgent && !agentMayImport(target):
					t.Errorf("%s imports %s: no server code on a tenant's machine", f.name, path)
				case isAgent && agentMayImport(target):
					// Among themselves the agent's packages are one program.
				case known[target] >= layer:
					t.Errorf("%s (layer %d) imports %s (layer %d): declare the small interface you need and let daemon pass it", f.name, layer, path, known[target])
				}
				if dir == "cli" && target != "client" && known[target] > 11 && !cliMayImport(target) {
					t.Errorf("%s imports %s: the command line reaches a server only through client", f.name, path)
				}
			}
		}
	}
}

// cliMayImport lists what commands that work without a server need.
func cliMayImport(path string) bool {
	return path == "image" || path == "images" || path == "spec" || path == "inventory" || path == "certificate" || path == "certificate/page"
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
