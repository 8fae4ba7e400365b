package image

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	muster "github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/errortest"
	"github.com/muster-hpc/muster/storage/image/recipes"
)

const goodRecipe = `
name: small
summary: a small image
base: {suite: trixie}
scheduler: none
agent: {min: 1, max: 2}
packages: [openssh-server, nano, nano]
requires: {memory: 64MiB, cpu_level: x86-64-v2, architecture: amd64}
`

func book(recipes map[string]string) *Book {
	files := fstest.MapFS{}
	for name, text := range recipes {
		files[name+".yaml"] = &fstest.MapFile{Data: []byte(text)}
	}
	return NewBook(files)
}

func TestLoadFillsInDefaults(t *testing.T) {
	t.Parallel()
	rec, err := book(map[string]string{"small": goodRecipe}).Load("small")
	if err != nil {
		t.Fatal(err)
	}
	if rec.Base.Mirror != defaultMirror() || rec.Base.Components[0] != "main" || rec.Base.Distribution != "debian" {
		t.Errorf("base = %+v", rec.Base)
	}
	if got := strings.Join(rec.Packages, " "); got != "nano openssh-server" {
		t.Errorf("packages = %q, want a sorted set", got)
	}
	if rec.Requires.Memory != 64<<20 || rec.Requires.CPULevel != 2 {
		t.Errorf("requires = %+v", rec.Requires)
	}
}

func TestDecodeReportsEveryProblem(t *testing.T) {
	t.Parallel()
	_, err := Decode("bad.yaml", []byte(`
name: Bad_Name
pakages: [x]
base: {suite: trixie, miror: "http://x/"}
kernel: maybe
summary: one
summary: two
requires: {cpu_level: v9, memory: lots}
files:
  - {path: etc/x, mode: "99"}
commands: [{name: x}]
`))
	if muster.CodeOf(err) != muster.EInvalid {
		t.Fatalf("err = %v", err)
	}
	want := []string{
		"pakages unknown-field line 3, column 1",
		"base.miror unknown-field line 4, column 23",
		"kernel bad-value line 5, column 9",
		"summary given-twice line 7, column 1",
		"requires.cpu_level bad-value line 8, column 23",
		"requires.memory bad-value line 8, column 35",
		"files[0].mode bad-value line 10, column 25",
	}
	if got := errortest.Problems(errortest.Listed(err)); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	for _, meant := range []string{`"packages"`, `"mirror"`} {
		if !strings.Contains(err.Error(), meant) {
			t.Errorf("%q does not say what was meant: %s", err, meant)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"empty":            {"", "required"},
		"not YAML":         {"a: [", "bad-syntax"},
		"a list":           {"- a", "wrong-type line 1, column 1"},
		"two documents":    {"name: a\n---\nname: b\n", "bad-syntax line 2, column 1"},
		"too large":        {"#" + strings.Repeat("x", maxRecipeBytes), "too-large"},
		"alias":            {"name: &a x\nsummary: *a\n", "name bad-syntax line 1, column 7; summary bad-syntax line 2, column 10"},
		"merge key":        {"<<: {name: x}\n", "<< unknown-field line 1, column 1"},
		"octal trap":       {"name: a\nfiles: [{path: /x, mode: 0755}]\n", "files[0].mode wrong-type line 2, column 26"},
		"option as name":   {"name: a\npackages: ['-o=x']\n", "packages[0] bad-value"},
		"apt removal":      {"name: a\npackages: ['munge-']\n", "packages[0] bad-value"},
		"path climbs":      {"name: a\nfiles: [{path: /etc/../../x}]\n", "files[0].path bad-value"},
		"path twice":       {"name: a\nfiles: [{path: /x}, {path: /x}]\n", "files[1].path given-twice"},
		"unit":             {"name: a\nservices: {mask: ['a b.service']}\n", "services.mask[0] bad-value"},
		"unit option":      {"name: a\nservices: {mask: ['sshd']}\n", "services.mask[0] bad-value"},
		"scheduler":        {"name: a\nscheduler: slrm\n", "scheduler bad-value"},
		"mirror password":  {"name: a\nbase: {mirror: 'http://u:p@h/'}\n", "base.mirror bad-value"},
		"mirror scheme":    {"name: a\nbase: {mirror: 'file:///x'}\n", "base.mirror bad-value"},
		"looks like an ID": {"name: deadbeef\n", "name bad-value"},
		"negative uid":     {"name: a\naccounts: [{name: x, uid: -7, gid: 1}]\n", "accounts[0].uid out-of-range"},
		"root account":     {"name: a\naccounts: [{name: x, uid: 0}]\n", "accounts[0].uid out-of-range"},
		"colon in home":    {"name: a\naccounts: [{name: x, uid: 5, home: '/a:b'}]\n", "accounts[0] bad-value"},
		"command quote":    {"name: a\ncommands: [{name: \"it's\", run: x}]\n", "commands[0].name bad-value"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Decode("x.yaml", []byte(c.text))
			if muster.CodeOf(err) != muster.EInvalid || errortest.Brief(err) != c.want {
				t.Errorf("%v is %q, want %q", err, errortest.Brief(err), c.want)
			}
		})
	}
}

func TestLoadRefuses(t *testing.T) {
	t.Parallel()
	b := book(map[string]string{
		"a":        "name: a\nextends: b\n",
		"b":        "name: b\nextends: a\n",
		"c":        "name: c\nextends: smal\n",
		"d":        "name: other\n",
		"base":     "name: base\nabstract: true\n",
		"small":    goodRecipe,
		"bare":     "name: bare\n",
		"twins":    goodRecipe + "accounts: [{name: x, uid: 7}, {name: y, uid: 7}]\n",
		"twins-ok": "name: twins-ok\nextends: small\naccounts: [{name: x, uid: 7}, {name: y, uid: 8}]\n",
	})
	for name, want := range map[string]string{
		"a": "extends contradiction", "c": "extends no-such-recipe", "d": "name bad-value",
		"bare": "base.suite required; scheduler required; agent required; packages required", "smll": "no-such-recipe", "../x": "bad-name",
	} {
		if _, err := b.Load(name); errortest.Brief(err) != want {
			t.Errorf("Load(%s) = %v, %q, want %q", name, err, errortest.Brief(err), want)
		}
	}
	if _, err := b.Load("twins-ok"); err != nil {
		t.Error(err)
	}
	if rec, err := b.Load("base"); err != nil || len(complete(rec)) == 0 {
		t.Errorf("an abstract recipe loads but cannot be built: %v", err)
	}
	var me *muster.Error
	if _, err := b.Load("smll"); muster.CodeOf(err) != muster.ENotFound || !asError(err, &me) || !strings.Contains(me.Hint, `"small"`) {
		t.Errorf("unknown recipe: %v", err)
	}
}

func TestExtend(t *testing.T) {
	t.Parallel()
	b := book(map[string]string{
		"small": goodRecipe + `
files: [{path: /a, content: old}, {path: /b, content: kept}]
commands: [{run: first}]
user_root: true
`,
		"more": `
name: more
extends: small
packages: [vim-tiny]
files: [{path: /a, content: new}]
commands: [{run: second}]
user_root: false
base: {suite: bookworm}
`})
	rec, err := b.Load("more")
	if err != nil {
		t.Fatal(err)
	}
	if rec.UserRoot || rec.Base.Suite != "bookworm" || rec.Requires.Memory != 64<<20 || rec.Extends != "" {
		t.Errorf("recipe = %+v", rec)
	}
	if len(rec.Packages) != 3 || rec.Files[0].Content != "new" || rec.Files[1].Content != "kept" || rec.Commands[0].Run != "first" || rec.Commands[1].Run != "second" {
		t.Errorf("lists = %+v", rec)
	}
}

func TestHashFollowsContentOnly(t *testing.T) {
	t.Parallel()
	load := func(text string) string {
		rec, err := book(map[string]string{"small": text}).Load("small")
		if err != nil {
			t.Fatal(err)
		}
		return rec.Hash()
	}
	first := load(goodRecipe)
	same := strings.Replace(goodRecipe, "[openssh-server, nano, nano]", "[nano, openssh-server] # sorted", 1)
	same = strings.Replace(same, "a small image", "another summary", 1)
	same = strings.Replace(same, "suite: trixie", "suite: trixie, mirror: 'http://mirror.example/debian'", 1)
	if load(same) != first {
		t.Error("order, comments, summary and mirror must not change the hash")
	}
	for _, change := range []string{"files: [{path: /x}]", "files: [{path: /x, mirror: pool/x, sha256: " + strings.Repeat("a", 64) + "}]", "user_root: true", "trim: [/usr/share/x]", "services: {mask: [a.service]}", "commands: [{run: x}]"} {
		if load(goodRecipe+change+"\n") == first {
			t.Errorf("%s must change the hash", change)
		}
	}
}

func TestShippedRecipes(t *testing.T) {
	t.Parallel()
	b := NewBook(recipes.Recipes())
	if got := strings.Join(b.Names(), " "); got != "hpc hpc-12 hpc-apps hpc-stacks hpc-vm raw" {
		t.Errorf("recipes = %q", got)
	}
	accounts := map[string]Account{}
	for _, name := range b.Names() {
		rec, err := b.Load(name)
		if err != nil {
			t.Fatalf("%+v", err)
		}
		if rec.UserRoot != (name == "raw") || (rec.Scheduler == "slurm") == (name == "raw") {
			t.Errorf("%s: user_root %v, scheduler %s", name, rec.UserRoot, rec.Scheduler)
		}
		for _, path := range []string{"/usr/src/muster-probe/src/main.c", "/usr/src/muster-kernels/src/main.c", "/usr/src/muster-apps/src/lattice.c"} {
			there := slices.ContainsFunc(rec.Files, func(f File) bool { return f.Path == path && strings.Contains(f.Content, "int main(") })
			if there != (name != "raw") {
				t.Errorf("%s: %s is there: %v", name, path, there)
			}
		}
		fetched := slices.ContainsFunc(rec.Files, func(f File) bool { return f.Path == "/usr/src/hpcc.tar.gz" && f.Mirror != "" && f.SHA256 != "" })
		if fetched != (name != "raw") {
			t.Errorf("%s: the source of HPL is there: %v", name, fetched)
		}
		for _, a := range rec.Accounts {
			if was, ok := accounts[a.Name]; ok && was != a {
				t.Errorf("%s has another number in %s", a.Name, name)
			}
			accounts[a.Name] = a
		}
	}
}

func TestRecipesOfASiteComeFirst(t *testing.T) {
	t.Parallel()
	mine := fstest.MapFS{"raw.yaml": {Data: []byte(strings.Replace(goodRecipe, "name: small", "name: raw", 1))}}
	rec, err := NewBook(mine, recipes.Recipes()).Load("raw")
	if err != nil || rec.Summary != "a small image" {
		t.Errorf("recipe = %+v, %v", rec, err)
	}
}

func TestFilesBesideTheRecipe(t *testing.T) {
	t.Parallel()
	site := func(from string) fstest.MapFS {
		return fstest.MapFS{
			"small.yaml":   {Data: []byte(goodRecipe + "files: [{path: /opt/tool, from: " + from + ", mode: \"0755\"}]\n")},
			"tool/run":     {Data: []byte("#!/bin/sh\n")},
			"tool/lib/a.c": {Data: []byte("int a;\n")},
			"tool.big":     {Data: make([]byte, maxFileBytes+1)},
		}
	}
	rec, err := NewBook(site("tool")).Load("small")
	if err != nil {
		t.Fatal(err)
	}
	want := []File{{Path: "/opt/tool/lib/a.c", Mode: 0o755, Content: "int a;\n"}, {Path: "/opt/tool/run", Mode: 0o755, Content: "#!/bin/sh\n"}}
	if !slices.Equal(rec.Files, want) {
		t.Errorf("files = %+v", rec.Files)
	}
	changed := site("tool")
	changed["tool/lib/a.c"] = &fstest.MapFile{Data: []byte("int b;\n")}
	if other, err := NewBook(changed).Load("small"); err != nil || other.Hash() == rec.Hash() {
		t.Errorf("another content must be another hash: %v", err)
	}
	if one, err := NewBook(site("tool/run")).Load("small"); err != nil || len(one.Files) != 1 || one.Files[0].Path != "/opt/tool" {
		t.Errorf("one file: %+v, %v", one, err)
	}
	// A package, say: neither its size nor bytes that are no text are in the way.
	binary := site("tool")
	binary["tool/lib/a.c"] = &fstest.MapFile{Data: append(make([]byte, 5<<20), 0xfe)}
	first, err := NewBook(binary).Load("small")
	if err != nil {
		t.Fatal(err)
	}
	binary["tool/lib/a.c"] = &fstest.MapFile{Data: append(make([]byte, 5<<20), 0xff)}
	if other, err := NewBook(binary).Load("small"); err != nil || other.Hash() == first.Hash() {
		t.Errorf("other bytes must be another hash: %v", err)
	}
	// A site's recipe extends ours: what ours brings lies on our shelf.
	up := fstest.MapFS{"mine.yaml": {Data: []byte("name: mine\nextends: small\n")}}
	if mine, err := NewBook(up, site("tool")).Load("mine"); err != nil || len(mine.Files) != 2 {
		t.Errorf("extended: %v", err)
	}
	for _, from := range []string{"../tool", "/tool", ".", "no/such", "tool.big"} {
		if _, err := NewBook(site(from)).Load("small"); muster.CodeOf(err) != muster.EInvalid || !strings.Contains(err.Error(), "files[0].from") {
			t.Errorf("%s: %v", from, err)
		}
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"secret": "s", "small.yaml": goodRecipe + "files: [{path: /opt/tool, from: tool}]\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("secret", filepath.Join(dir, "tool")); err != nil {
		t.Fatal(err)
	}
	if _, err := NewBook(os.DirFS(dir)).Load("small"); err == nil {
		t.Error("a link was followed")
	}
}

func TestCheckPackage(t *testing.T) {
	t.Parallel()
	for _, ok := range []string{"g++", "libstdc++6", "libfftw3-dev", "0ad", "xx=1:2.3-4~deb13u1+b1", "a.b"} {
		if why := CheckPackage(ok); why != "" {
			t.Errorf("%s: %s", ok, why)
		}
	}
	for _, bad := range []string{"", "a", "-y", "--help", "A", "a b", "a;b", "a/b", "a:amd64", "../x", "./x.deb", "a-", "x=", "x=-1", "x=1 2", "a\n", "a*", "a^", "a$", "~nfoo", "?name(x)"} {
		if CheckPackage(bad) == "" {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func TestParseSize(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{"0": 0, "17": 17, "2GiB": 2 << 30, "512 MiB": 512 << 20, "1KB": 1000} {
		if got, ok := parseSize(text); !ok || got != want {
			t.Errorf("%s = %d, %v", text, got, ok)
		}
	}
	for _, bad := range []string{"", "GiB", "-1", "1.5GiB", "9999999999TiB", "1gb", "+1"} {
		if _, ok := parseSize(bad); ok {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func TestSuggest(t *testing.T) {
	t.Parallel()
	names := []string{"packages", "name", "namespace_masks"}
	if got := didYouMean("pacakges", names); got != `did you mean "packages"?` {
		t.Error(got)
	}
	if got := didYouMean("entirely-else", names); got != "" {
		t.Error(got)
	}
}

// Whatever is written into a recipe never crashes the reader, and an accepted
// recipe keeps its promises.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(goodRecipe))
	shipped := os.DirFS("./recipes")
	names, _ := fs.Glob(shipped, "*.yaml")
	for _, n := range names {
		data, err := fs.ReadFile(shipped, n)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte("a: &a [*a, *a]"))
	f.Add([]byte("name: a\nfiles: [{path: /x, mode: \"0755\", content: !!binary aGk=}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		rec, err := Decode("fuzz.yaml", data)
		if err != nil {
			if muster.CodeOf(err) != muster.EInvalid {
				t.Fatalf("err = %v", err)
			}
			return
		}
		for _, p := range rec.Packages {
			if strings.HasPrefix(p, "-") || strings.ContainsAny(p, " ,;\n/") {
				t.Fatalf("package %q", p)
			}
		}
		for _, file := range rec.Files {
			if strings.Contains(file.Path, "/../") || !strings.HasPrefix(file.Path, "/") {
				t.Fatalf("path %q", file.Path)
			}
		}
	})
}

func TestFilesFromTheMirror(t *testing.T) {
	t.Parallel()
	sum := strings.Repeat("ab", 32)
	load := func(file string) (*Recipe, error) {
		return NewBook(fstest.MapFS{"small.yaml": {Data: []byte(goodRecipe + "files: [{path: /opt/x.tar, " + file + "}]\n")}}).Load("small")
	}
	rec, err := load("mirror: pool/main/x/x_1.0+b~1.orig.tar.gz, sha256: " + sum)
	if err != nil || len(rec.Files) != 1 {
		t.Fatalf("%+v, %v", rec, err)
	}
	script := customizeScript(rec, "/a cache", "http://mirror.example/debian")
	if want := "fetch 'http://mirror.example/debian/pool/main/x/x_1.0+b~1.orig.tar.gz' " + sum + " '/opt/x.tar' 0644\n"; !strings.Contains(script, want) {
		t.Errorf("the hook lacks %q:\n%s", want, script)
	}
	for _, bad := range []string{
		"mirror: pool/x", "sha256: " + sum, "mirror: pool/x, sha256: " + strings.ToUpper(sum), "mirror: ../x, sha256: " + sum,
		"mirror: a/../../x, sha256: " + sum, "mirror: /x, sha256: " + sum, "mirror: 'http://x/y', sha256: " + sum, "mirror: \"p'x\", sha256: " + sum,
		"mirror: pool/x, content: y, sha256: " + sum, "mirror: pool/x, early: true, sha256: " + sum,
	} {
		if _, err := load(bad); muster.CodeOf(err) != muster.EInvalid {
			t.Errorf("%s: got %v", bad, err)
		}
	}
}
