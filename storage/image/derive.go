package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	muster "github.com/muster-hpc/muster"
)

// maxAdded is how many packages one request may add.
const maxAdded = 200

// Derive makes of an image one that has more packages, and finds it if it is
// there already: a base and a list of packages always mean the same image, so
// that the replacement of a node boots what its neighbours run. Where the base
// has all packages, it is the answer. o.Refresh forgets what the list meant.
//
// It returns EInvalid, with one problem for each package that is misspelt or
// unknown.
func (s *Store) Derive(ctx context.Context, base muster.ImageID, packages []string, o BuildOptions) (*Result, error) {
	if err := checkAdded(packages); err != nil {
		return nil, err
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	began := s.clock.Now()
	from, err := s.Show(base)
	if err != nil {
		return nil, err
	}
	added := missing(from, packages)
	if len(added) == 0 {
		return &Result{Image: from, Took: s.clock.Now().Sub(began)}, nil
	}
	if err := CheckBase(from); err != nil {
		return nil, err
	}
	what := "derived-" + from.Name
	track := s.follow(what, o.Progress)
	defer track.end()
	key := derivedKey(base, added)
	unlock, err := s.lockContext(ctx, "derived-"+key, func() { track.enter("wait for another builder") })
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := s.makeRoom(ctx, key, o.For); err != nil {
		return nil, err
	}
	if m := s.derived(key); m != nil && !o.Refresh {
		if err := s.claim(key, o.For.Project); err != nil {
			return nil, err
		}
		return &Result{Image: m, Took: s.clock.Now().Sub(began)}, nil
	}
	if err := s.prepared(from.Architecture); err != nil {
		return nil, err
	}
	m, err := s.derive(ctx, from, added, o, track)
	if err != nil {
		return nil, explainBuild(from.Name+" with "+strings.Join(added, ", "), s.logPath(what), err)
	}
	d := derivation{ID: m.ID, Recipe: from.Recipe, Built: s.clock.Now()}
	if p := o.For.Project; p != "" {
		d.Projects = map[string]time.Time{p: d.Built.UTC()}
	}
	if err := s.noteDerived(key, d); err != nil {
		return nil, err
	}
	done := track.end()
	s.learn(what, done)
	return &Result{Image: m, Built: true, Took: s.clock.Now().Sub(began), Stages: done}, nil
}

// CheckBase refuses an image to which packages cannot be added: EInvalid. In a root that a
// tenant saved, the programs that would fetch them are the tenant's own.
func CheckBase(m *muster.Image) error {
	if m.Saved == nil {
		return nil
	}
	return muster.Errorf(muster.EInvalid, "packages cannot be added to a saved root").Because(muster.ReasonPackagesRefused).
		WithHint("leave out packages; install them as root on a node of a cluster that has this root, and save it again")
}

func checkAdded(packages []string) error {
	var problems []muster.Problem
	if len(packages) > maxAdded {
		problems = append(problems, muster.Problem{Field: "packages", Message: fmt.Sprintf("%d packages; %d is the limit", len(packages), maxAdded)})
		packages = nil
	}
	for i, p := range packages {
		if why := CheckPackage(p); why != "" {
			problems = append(problems, muster.Problem{Field: fmt.Sprintf("packages[%d]", i), Message: fmt.Sprintf("%q: %s", clip(p), why)})
		}
	}
	return refusePackages(problems)
}

func refusePackages(problems []muster.Problem) error {
	if len(problems) == 0 {
		return nil
	}
	e := muster.Errorf(muster.EInvalid, "these packages cannot be added").Because(muster.ReasonPackagesRefused).WithHint("correct the packages of the request")
	return e.Listing(problems)
}

// missing are the packages that an image does not have yet, sorted.
func missing(m *muster.Image, packages []string) []string {
	return slices.DeleteFunc(sortedSet(packages), func(spec string) bool {
		name, version, pinned := strings.Cut(spec, "=")
		have := versionOf(m.Packages, name)
		return have != "" && (!pinned || have == version)
	})
}

func derivedKey(base muster.ImageID, added []string) string {
	return digest([]byte(string(base) + "\n" + strings.Join(sortedSet(added), "\n")))
}

func (s *Store) derivedPath(key string) string { return filepath.Join(s.dir, "derived", key+".json") }

// derived is what a base and packages gave before, if it is still there.
func (s *Store) derived(key string) *muster.Image {
	data, err := os.ReadFile(s.derivedPath(key))
	if err != nil {
		return nil
	}
	a, err := derivationDoc.Decode(s.derivedPath(key), data)
	if err != nil {
		return nil // it is derived again
	}
	m, err := s.Show(a.ID)
	if err != nil || s.check(m, readUnlessKnown) != nil {
		return nil
	}
	return m
}

func (s *Store) derive(ctx context.Context, from *muster.Image, added []string, o BuildOptions, track *stages) (_ *muster.Image, err error) {
	track.enter("prepare")
	work, err := s.newWorkspace("derive")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, work.close()) }()
	log, err := os.Create(s.logPath("derived-" + from.Name))
	if err != nil {
		return nil, storeError("write the log of the build", err)
	}
	defer log.Close()
	began := time.Now()
	// The base is read whole anyhow: read only what is right.
	if err := s.checkContext(ctx, from, readUnlessKnown); err != nil {
		return nil, err
	}
	file, _ := from.File(muster.FileRoot)
	var out *muster.Image
	err = withPrivateMounts(func() error {
		track.enter("unpack")
		root := work.path("root")
		release, err := s.unpackBase(ctx, work, filepath.Join(s.Path(from.ID), file.Name), root, log)
		defer release()
		if err != nil {
			return err
		}
		if err := s.install(ctx, work, from, added, o, track, log); err != nil {
			return err
		}
		track.enter("tidy")
		if err := s.tidy(ctx, root, began, log); err != nil {
			return err
		}
		m := *from
		m.Base, m.Added, m.Files = from.ID, added, nil
		if err := inspect(root, &m); err != nil {
			return err
		}
		if v := versionOf(m.Packages, "slurmd"); m.Slurm != "" {
			m.Slurm = upstream(v)
		}
		m.ID = contentID(m.Recipe, m.Base, m.Added, m.Architecture, m.Packages)
		if err := s.putKernel(work.path("root"), from, &m); err != nil {
			return err
		}
		out, err = s.finish(ctx, work, &m, began, o, track, log)
		return err
	})
	return out, err
}

// install adds packages to the unpacked base.
func (s *Store) install(ctx context.Context, work *workspace, from *muster.Image, added []string, o BuildOptions, track *stages, log io.Writer) error {
	cache := filepath.Join(s.dir, "cache", from.Suite+"-"+from.Architecture)
	lists := filepath.Join(s.dir, "cache", "lists-"+from.Suite+"-"+from.Architecture)
	if err := errors.Join(os.MkdirAll(cache, 0o755), os.MkdirAll(lists, 0o755)); err != nil {
		return storeError("keep downloaded packages", err)
	}
	hostConfig, hostMirror := s.tools.apt(ctx)
	if o.Mirror != "" {
		hostMirror = o.Mirror
	}
	files := map[string]string{
		"download.sh": downloadScript, "apt.conf": builderApt(hostConfig), "dpkg.cfg": "force-unsafe-io\n",
		"wanted": strings.Join(added, "\n") + "\n", "mirror": hostMirror, "default": defaultMirror(),
	}
	for name, content := range files {
		if err := os.WriteFile(work.path(name), []byte(content), 0o600); err != nil {
			return storeError("prepare the build", err)
		}
	}
	root := work.path("root")
	src, err := readSources(root, from.Base != "")
	if err != nil {
		return err
	}
	lacking, err := packagesLacking(root)
	if err != nil {
		return err
	}
	if err := os.WriteFile(work.path("lacking"), []byte(strings.Join(lacking, "\n")+"\n"), 0o600); err != nil {
		return storeError("prepare the build", err)
	}
	unlock, err := s.lockContext(ctx, "lists-"+from.Suite, func() { track.enter("wait for another builder") })
	if err != nil {
		return err
	}
	defer unlock()
	var unknown []packageComplaint
	onLine := func(line string) {
		if stage := stageOf(line); stage != "" {
			track.enter(stage)
		}
		if p, ok := unknownPackage(line); ok {
			unknown = slices.DeleteFunc(unknown, func(q packageComplaint) bool { return q.Message == p.Message })
			unknown = append(unknown, p)
		}
	}
	err = s.run(ctx, job{log: log, onLine: onLine, mirrors: newMirrorProxy(append(src.mirrors, hostMirror), wayOut(hostConfig)),
		argv: []string{"/bin/sh", work.path("download.sh"), root, cache, lists}})
	if err != nil && len(unknown) > 0 {
		return s.withSuggestions(work, unknown)
	}
	if err != nil {
		return err
	}
	again, err := readNames(work.path("again"))
	if err != nil {
		return err
	}
	track.enter("install")
	argv := []string{"/usr/bin/apt-get", "-q", "-y", "--no-install-recommends", "--no-download", "-o", "Dpkg::Options::=--force-confold",
		"-o", "Debug::NoLocking=1", "--reinstall", "install", "--"}
	err = s.installing(ctx, job{log: log, onLine: onLine, confined: &confinement{
		Root: root, ReadOnly: map[string]string{"var/cache/apt/archives": cache, "var/lib/apt/lists": lists},
		Argv: append(append(argv, added...), again...), Env: append(hostEnvironment(), "TERM=dumb"),
	}})
	if err != nil {
		return err
	}
	if err := checkWhole(root, from.Packages, again, log); err != nil {
		return err
	}
	return afterInstall(root, src.list)
}

// installTime is how long packages may take to install. A script that waits for ever
// holds a place in the queue of builds.
const installTime = time.Hour

// installing runs what a tenant's packages bring, for a time, and while the disk of the
// store has room.
func (s *Store) installing(ctx context.Context, j job) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	began := time.Now()
	over := make(chan struct{})
	defer close(over)
	go func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-over:
				return
			case <-tick.C:
			}
			full := s.room()
			switch {
			case time.Since(began) > installTime:
				cancel(muster.Errorf(muster.EInvalid, "the scripts of these packages did not end within %s", installTime).Because(muster.ReasonPackagesRefused).
					WithHint("leave out the package that waits: the log of the build ends with it"))
			case full != nil:
				cancel(full)
			}
		}
	}()
	return s.run(ctx, j)
}

// room refuses to fill the disk of the store to the last.
func (s *Store) room() error {
	var fs syscall.Statfs_t
	if syscall.Statfs(s.dir, &fs) == nil && int64(fs.Bavail)*fs.Bsize < spaceForBuild/4 {
		return muster.Errorf(muster.EUnavailable, "the disk of the image store is nearly full: it was stopped").Because(muster.ReasonDiskFull).
			WithHint("free some space, or ask for less")
	}
	return nil
}

// afterInstall takes out of a root what only the installation needed. Packages may have
// put anything there, links above all: nothing is reached through them.
func afterInstall(root string, sources []byte) error {
	in, err := os.OpenRoot(root)
	if err != nil {
		return storeError("tidy the root file system", err)
	}
	defer func() { _ = in.Close() }()
	err = in.RemoveAll("usr/sbin/policy-rc.d")
	if err == nil {
		err = in.RemoveAll("etc/apt/sources.list")
	}
	if err == nil {
		err = in.WriteFile("etc/apt/sources.list", sources, 0o644)
	}
	if err != nil {
		return storeError("tidy the root file system", err)
	}
	return nil
}

// packageComplaint is a package that cannot be had. name is that of one that is not there;
// "" otherwise.
type packageComplaint struct {
	muster.Problem
	name string
}

// unknownPackage understands the complaints of apt-get and of installScript
// about packages that are not there.
func unknownPackage(line string) (packageComplaint, bool) {
	p := packageComplaint{Problem: muster.Problem{Field: "packages"}}
	if rest, ok := strings.CutPrefix(line, "muster: component "); ok {
		component, name, _ := strings.Cut(rest, " has ")
		p.name = name
		p.Message, p.Hint = fmt.Sprintf("there is no package %q", clip(name)), componentHint(clip(component))
		return p, true
	}
	if name, ok := strings.CutPrefix(line, "muster: unknown "); ok {
		p.name = name
		p.Message = fmt.Sprintf("there is no package %q", clip(name))
		return p, true
	}
	rest, ok := strings.CutPrefix(line, "E: ")
	if !ok {
		return p, false
	}
	switch {
	case strings.HasPrefix(rest, "Version "), strings.HasSuffix(rest, "has no installation candidate"):
		p.Message = strings.TrimSuffix(rest, ".")
		return p, true
	}
	return p, false
}

// componentHint says how an image comes to the packages of a component.
func componentHint(component string) string {
	return fmt.Sprintf("it is in Debian's %s: use an image whose recipe has base: {components: [main, %s]}", component, component)
}

// withSuggestions says for each unknown package which one may have been meant.
func (s *Store) withSuggestions(work *workspace, unknown []packageComplaint) error {
	data, err := os.ReadFile(work.path("known"))
	known := strings.Split(strings.TrimSpace(string(data)), "\n")
	problems := make([]muster.Problem, len(unknown))
	for i, u := range unknown {
		problems[i] = u.Problem
		if err == nil && u.name != "" && u.Hint == "" {
			problems[i].Hint = didYouMean(u.name, known)
		}
	}
	return refusePackages(problems)
}

// downloadScript fetches packages with the programs of the base image. It runs in
// namespaces of its own: its mounts end with it. It knows the packages by their exact
// names before apt-get sees them, because apt-get takes an unknown name for an
// expression, and one that ends in "-" for one to remove. Nothing of a package runs.
const downloadScript = `set -eu
root=$1 cache=$2 lists=$3 here=${0%/*}
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys" || :
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
mkdir "$root/dev/shm" "$root/dev/pts"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts" || :
for d in null zero full random urandom tty; do
	: > "$root/dev/$d"
	mount --bind "/dev/$d" "$root/dev/$d"
done
ln -s /proc/self/fd "$root/dev/fd"
mkdir -p "$root/var/cache/apt/archives/partial" "$root/var/lib/apt/lists/partial"
mount --bind "$cache" "$root/var/cache/apt/archives"
mkdir -p "$root/var/cache/apt/archives/partial"
mount --bind "$lists" "$root/var/lib/apt/lists"
mkdir -p "$root/var/lib/apt/lists/partial"
# Nothing is started inside an image, and the build's settings do not stay.
printf '#!/bin/sh\nexit 101\n' > "$root/usr/sbin/policy-rc.d"
chmod 755 "$root/usr/sbin/policy-rc.d"
cat "$here/apt.conf" > "$root/etc/apt/apt.conf.d/99mmdebstrap"
echo 'APT::Sandbox::User "root";' >> "$root/etc/apt/apt.conf.d/99mmdebstrap"
cat "$here/dpkg.cfg" > "$root/etc/dpkg/dpkg.cfg.d/99mmdebstrap"
mirror=$(cat "$here/mirror")
if [ -n "$mirror" ]; then
	sed -i "s|^deb $(cat "$here/default") |deb $mirror |" "$root/etc/apt/sources.list"
fi
inside() {
	env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
		${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} ${no_proxy:+no_proxy="$no_proxy"} \
		chroot "$root" "$@" < /dev/null
}
echo 'muster: stage lists'
inside apt-get -q -y --error-on=any update || inside apt-get -q -y update
inside apt-cache pkgnames | sort > "$here/known"
unknown=
for p in $(cat "$here/wanted"); do
	grep -qxF -e "${p%%=*}" "$here/known" || { echo "muster: unknown ${p%%=*}"; unknown="$unknown ${p%%=*}"; }
done
if [ -n "$unknown" ]; then
	# Perhaps they are in a component of the archive that this image does not use.
	mkdir "$root/run/lists"
	sed -nE 's#^(deb .*https?://[^ ]+ [^ /]+) .*#\1 contrib non-free non-free-firmware#p' "$root/etc/apt/sources.list" | head -n 1 > "$root/run/others.list"
	elsewhere="-o Dir::Etc::SourceList=/run/others.list -o Dir::Etc::SourceParts=- -o Dir::State::Lists=/run/lists -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache="
	inside apt-get -q $elsewhere update > "$here/others.log" 2>&1 || :
	for p in $unknown; do
		inside apt-cache $elsewhere madison -- "$p" | sed -nE 's#^.*\| [^ ]+ [^ /]+/([a-z-]+) .*#muster: component \1 has '"$p"'#p' | head -n 1
	done
	exit 3
fi
echo 'muster: stage download'
# What the image's own packages were trimmed by, what is added may need: those that it
# depends on come once more, whole.
: > "$here/again"
if grep -q . "$here/lacking"; then
	inside apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces --no-enhances \
		-- $(sed 's/=.*//' "$here/wanted") | grep -v '^[ <]' | sort -u | grep -xF -f "$here/lacking" > "$here/again" || :
fi
inside apt-get -q -y --no-install-recommends --reinstall -d install -- $(cat "$here/wanted" "$here/again")
`
