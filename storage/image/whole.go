package image

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	muster "github.com/muster-hpc/muster"
)

// trimmedFile lists, in an image, the path patterns that its own packages do without.
const trimmedFile = "/usr/share/muster/trimmed"

// excludeFile has dpkg leave out of every package what the image's recipe excludes.
const excludeFile = "/etc/dpkg/dpkg.cfg.d/50-muster-exclude"

// packagesLacking are the packages of a root file system that lack files by the recipe's
// trim, sorted. Kernels are none of them: what their modules lack stays away.
func packagesLacking(root string) ([]string, error) {
	in, err := os.OpenRoot(root)
	if err != nil {
		return nil, storeError("read the packages of the base", err)
	}
	defer func() { _ = in.Close() }() // only read
	trimmed, err := patternsOf(in, trimmedFile, "")
	if err != nil || trimmed == nil {
		return nil, err
	}
	names, err := packageLists(in)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, name := range names {
		files, err := filesOf(in, name)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(files, func(f string) bool {
			return trimmed.MatchString(f) && !strings.HasPrefix(f, "/usr/lib/modules/") && !present(in, f)
		}) {
			plain, _, _ := strings.Cut(name, ":")
			out = append(out, plain)
		}
	}
	return slices.Compact(out), nil
}

// checkWhole reports what the packages that were added to a base lack: files that it trims
// are an error, because programs would miss them; what else is not there, their own scripts
// took away, and it is only logged.
func checkWhole(root string, base []muster.ImagePackage, again []string, log io.Writer) error {
	in, err := os.OpenRoot(root)
	if err != nil {
		return storeError("read the added packages", err)
	}
	defer func() { _ = in.Close() }() // only read
	excluded, err := patternsOf(in, excludeFile, "path-exclude=")
	if err != nil {
		return err
	}
	trimmed, err := patternsOf(in, trimmedFile, "")
	if err != nil {
		return err
	}
	names, err := packageLists(in)
	if err != nil {
		return err
	}
	had := map[string]bool{}
	for _, p := range base {
		had[p.Name] = true
	}
	for _, name := range again {
		delete(had, name)
	}
	diverted := diversions(in)
	owned, gone := map[string]bool{}, map[string]string{}
	var added []string
	for _, name := range names {
		files, err := filesOf(in, name)
		if err != nil {
			return err
		}
		plain, _, _ := strings.Cut(name, ":")
		for _, f := range files {
			owned[f] = true
			if !had[plain] && !diverted[f] && !matches(excluded, f) {
				added = append(added, f)
				if !present(in, f) {
					gone[f] = plain
				}
			}
		}
	}
	var problems []muster.Problem
	report := func(f, name, what string) {
		_, _ = fmt.Fprintf(log, "muster: %s of package %s: %s\n", f, name, what)
		if matches(trimmed, f) && len(problems) < 10 {
			problems = append(problems, muster.Problem{Field: "packages", Message: fmt.Sprintf("%s lacks %s", name, clip(f))})
		}
	}
	for _, f := range added {
		if name, ok := gone[f]; ok {
			report(f, name, "not there")
			continue
		}
		// A link to what a package has and the image lacks leads nowhere.
		to, err := in.Readlink(strings.TrimPrefix(f, "/"))
		if err != nil {
			continue
		}
		if !path.IsAbs(to) {
			to = path.Join(path.Dir(f), to)
		}
		if to = path.Clean(to); !present(in, to) && owned[to] && !matches(excluded, to) {
			report(to, f, "the link leads nowhere")
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return muster.Errorf(muster.EInvalid, "these packages would not be whole").Because(muster.ReasonPackagesRefused).
		WithHint("an administrator takes what they lack out of the trim of the image's recipe").Listing(problems)
}

func matches(r *regexp.Regexp, f string) bool { return r != nil && r.MatchString(f) }

// patternsOf reads the lines of a file that begin with a prefix into one expression: as
// dpkg has it, * and ? match slashes too. It returns nil where there are none.
func patternsOf(in *os.Root, name, prefix string) (*regexp.Regexp, error) {
	data, err := readRegular(in, strings.TrimPrefix(name, "/"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, storeError("read "+name+" of the base", err)
	}
	var all []string
	for line := range strings.Lines(string(data)) {
		if p, ok := strings.CutPrefix(strings.TrimSpace(line), prefix); ok && p != "" {
			p = regexp.QuoteMeta(p)
			all = append(all, strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(p))
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	r, err := regexp.Compile("^(?:" + strings.Join(all, "|") + ")$")
	if err != nil {
		return nil, storeError("read "+name+" of the base", err)
	}
	return r, nil
}

// packageLists names the packages whose files dpkg knows, sorted: NAME or NAME:ARCHITECTURE.
func packageLists(in *os.Root) ([]string, error) {
	dir, err := in.Open("var/lib/dpkg/info")
	if err != nil {
		return nil, storeError("read the package lists", err)
	}
	defer func() { _ = dir.Close() }() // only read
	entries, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, storeError("read the package lists", err)
	}
	var out []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e, ".list"); ok {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out, nil
}

// filesOf are the paths that a package has by dpkg's list, whether they are there or not.
func filesOf(in *os.Root, name string) ([]string, error) {
	data, err := readRegular(in, "var/lib/dpkg/info/"+name+".list")
	if err != nil {
		return nil, storeError("read the files of package "+clip(name), err)
	}
	return slices.DeleteFunc(strings.Split(string(data), "\n"), func(f string) bool { return !path.IsAbs(f) || f == "/." }), nil
}

// diversions are the paths that a package moved aside for its own.
func diversions(in *os.Root) map[string]bool {
	data, err := readRegular(in, "var/lib/dpkg/diversions")
	if err != nil {
		return nil // most images have none
	}
	out := map[string]bool{}
	for line := range strings.Lines(string(data)) {
		out[strings.TrimSpace(line)] = true
	}
	return out
}

// present reports whether there is something at a path, be it a link that leads nowhere. What
// cannot be looked at, behind a link out of the root, counts as present.
func present(in *os.Root, f string) bool {
	_, err := in.Lstat(strings.TrimPrefix(f, "/"))
	return !errors.Is(err, fs.ErrNotExist)
}

// readNames reads a list of package names, one a line.
func readNames(file string) ([]string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, storeError("read what is installed again", err)
	}
	return strings.Fields(string(data)), nil
}
