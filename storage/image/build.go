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

// BuildOptions change how an image is built.
type BuildOptions struct {
	// Refresh asks the mirror for newer packages although the recipe did not
	// change, and builds again if there are any.
	Refresh bool
	// Mirror is used instead of the recipe's while building; it is not part of
	// the image. Empty: the host's own Debian mirror, or else the recipe's.
	Mirror string
	// Level of zstd, 1..22; 0 is the default.
	Level int
	// Progress is called at each stage and once a second. May be nil.
	Progress func(Progress)
	// For is on whose behalf an image is derived.
	For Asker
}

func (o BuildOptions) check() error {
	if o.Mirror != "" {
		if why := checkMirror(o.Mirror); why != "" {
			return muster.Errorf(muster.EInvalid, "mirror: %s", why).Because(muster.ReasonBadValue).WithHint("http://HOST/PATH")
		}
	}
	if o.Level < 0 || o.Level > 22 {
		return muster.Errorf(muster.EInvalid, "%d is not a level of zstd", o.Level).Because(muster.ReasonOutOfRange).WithHint("1 to 22; 0 is the default")
	}
	return nil
}

// Result is what Build and Derive give.
type Result struct {
	Image  *muster.Image
	Built  bool // false: it was there already
	Took   time.Duration
	Stages []StageTime // of what was done
}

// Build makes the image of a resolved recipe, or finds that it is there. It is
// safe to call at once from several processes: one builds, the others wait and
// find the result. Errors: EInvalid for an incomplete recipe, EUnavailable when
// the host, disk or mirror does not play along (the log of the build is kept in
// logs/), and ctx's error.
func (s *Store) Build(ctx context.Context, rec *Recipe, o BuildOptions) (*Result, error) {
	if problems := complete(rec); len(problems) > 0 {
		return nil, refuse(rec.Name, problems)
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	track := s.follow(rec.Name, o.Progress)
	defer track.end()
	unlock, err := s.lockContext(ctx, "recipe-"+rec.Name, func() { track.enter("wait for another builder") })
	if err != nil {
		return nil, err
	}
	defer unlock()
	hash := rec.Hash()
	if !o.Refresh {
		if m := s.present(rec.Name, hash); m != nil {
			return &Result{Image: m, Took: s.clock.Now().Sub(track.began)}, nil
		}
	}
	if err := s.prepared(rec.Requires.Architecture); err != nil {
		return nil, err
	}
	if old := s.present(rec.Name, hash); old != nil {
		same, err := s.current(ctx, rec, old, o, track)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			s.log.Warn("image freshness check failed, rebuilding", "image", rec.Name, "error", err)
		}
		if same {
			return &Result{Image: old, Took: s.clock.Now().Sub(track.began)}, nil
		}
	}
	m, err := s.build(ctx, rec, o, track)
	if err != nil {
		return nil, explainBuild(rec.Name, s.logPath(rec.Name), err)
	}
	if err := s.setAlias(rec.Name, alias{ID: m.ID, Recipe: hash, Built: s.clock.Now()}); err != nil {
		return nil, storeError("name image "+rec.Name, err)
	}
	done := track.end()
	s.learn(rec.Name, done)
	return &Result{Image: m, Built: true, Took: s.clock.Now().Sub(track.began), Stages: done}, nil
}

// present returns the image that an unchanged recipe gave before, if all of it
// is still there.
func (s *Store) present(name, hash string) *muster.Image {
	a, ok := s.alias(name)
	if !ok || a.Recipe != hash {
		return nil
	}
	m, err := s.Show(a.ID)
	if err != nil || s.check(m, readUnlessKnown) != nil {
		return nil
	}
	return m
}

// spaceForBuild is what a build needs at least while it runs, in bytes.
const spaceForBuild = 1 << 30

// prepared refuses what cannot work before time is spent on it.
func (s *Store) prepared(architecture string) error {
	if s.tools.isolate {
		if err := ready(); err != nil {
			return err
		}
	}
	if host := hostArchitecture(); architecture != host {
		return muster.Errorf(muster.EUnavailable, "an image for %s cannot be built on %s", architecture, host).Because(muster.ReasonBuildFailed).
			WithHint("build it on a machine of that architecture")
	}
	var fs syscall.Statfs_t
	if err := syscall.Statfs(s.dir, &fs); err == nil && int64(fs.Bavail)*fs.Bsize < spaceForBuild {
		return muster.Errorf(muster.EUnavailable, "%d MiB are free for the image store; building needs some GiB", int64(fs.Bavail)*fs.Bsize>>20).Because(muster.ReasonDiskFull).
			WithHint("free some space, or use a state directory on another disk")
	}
	return nil
}

func (s *Store) logPath(name string) string { return filepath.Join(s.dir, "logs", name+".log") }

func (s *Store) build(ctx context.Context, rec *Recipe, o BuildOptions, track *stages) (_ *muster.Image, err error) {
	track.enter("prepare")
	work, err := s.newWorkspace("build")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, work.close()) }()
	log, err := os.Create(s.logPath(rec.Name))
	if err != nil {
		return nil, storeError("write the log of the build", err)
	}
	defer log.Close()
	began := time.Now() // of the file system, not of the store's clock
	root := work.path("root")
	if err := s.debootstrap(ctx, work, rec, o, track, log); err != nil {
		return nil, err
	}
	track.enter("tidy")
	if err := s.tidy(ctx, root, began, log); err != nil {
		return nil, err
	}
	m, err := describe(root, rec)
	if err != nil {
		return nil, err
	}
	return s.finish(ctx, work, m, began, o, track, log)
}

// finish packs a tidy root file system that m describes, and publishes it. What
// changed since the build began has one time afterwards.
func (s *Store) finish(ctx context.Context, work *workspace, m *muster.Image, began time.Time, o BuildOptions, track *stages, log io.Writer) (*muster.Image, error) {
	root, out := work.path("root"), work.path("out")
	if err := os.Mkdir(out, 0o700); err != nil {
		return nil, storeError("pack the image", err)
	}
	if m.Kernel != "" {
		track.enter("kernel")
		if err := s.takeKernel(ctx, root, out, m, log); err != nil {
			return nil, err
		}
		if err := s.settle(ctx, root, began, log); err != nil {
			return nil, err
		}
	}
	track.enter("compress")
	if err := s.squash(ctx, root, filepath.Join(out, rootFile), o.Level, log); err != nil {
		return nil, err
	}
	track.enter("publish")
	files, err := digests(ctx, out)
	if err != nil {
		return nil, err
	}
	m.Files, m.Created = files, s.clock.Now()
	return s.publish(out, m)
}

// debootstrap unpacks and installs everything into the workspace's root.
func (s *Store) debootstrap(ctx context.Context, work *workspace, rec *Recipe, o BuildOptions, track *stages, log io.Writer) error {
	cache := filepath.Join(s.dir, "cache", rec.Base.Suite+"-"+rec.Requires.Architecture)
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return storeError("keep downloaded packages", err)
	}
	hostConfig, hostMirror := s.tools.apt(ctx)
	from := used(rec.Base, o.Mirror, hostMirror)
	if err := writeHooks(work.dir, cache, from.Mirror, rec); err != nil {
		return storeError("prepare the build", err)
	}
	apt, dpkg := work.path("apt.conf"), work.path("dpkg.cfg")
	err := errors.Join(os.WriteFile(apt, []byte(builderApt(hostConfig)), 0o600), os.WriteFile(dpkg, []byte(builderDpkg(rec)), 0o600))
	if err != nil {
		return storeError("prepare the build", err)
	}
	packages := slices.Clone(rec.Packages)
	if rec.Kernel != KernelNone {
		packages = append(packages, rec.Kernel.pkg(rec.Requires.Architecture))
	}
	hook := func(script string) string { return "sh " + quote(work.path(script)) + ` "$1"` }
	argv := []string{
		s.tools.mmdebstrap, "--mode=root", "--verbose", "--variant=minbase", "--format=directory",
		"--architectures=" + rec.Requires.Architecture,
		"--skip=essential/unlink", // packages stay until they are in the cache
		"--aptopt=" + apt, "--dpkgopt=" + dpkg,
		"--setup-hook=" + hook("setup.sh"), "--essential-hook=" + hook("essential.sh"), "--customize-hook=" + hook("customize.sh"),
		"--include=" + strings.Join(packages, ","),
		rec.Base.Suite, work.path("root"),
	}
	lines := sources(from, keyring(keyrings()))
	argv = append(argv, lines...)
	mirrors := slices.Clone(lines)
	for _, f := range rec.Files {
		if f.isSource() {
			mirrors = append(mirrors, f.Content)
		}
	}
	return s.run(ctx, job{argv: argv, log: log, mirrors: newMirrorProxy(mirrors, wayOut(hostConfig)), env: []string{"TMPDIR=" + work.dir}, onLine: func(line string) {
		if stage := stageOf(line); stage != "" {
			track.enter(stage)
		}
	}})
}

// stageOf reports which stage a line of mmdebstrap or of a hook begins, if any.
func stageOf(line string) string {
	if stage, ok := strings.CutPrefix(line, "muster: stage "); ok {
		return stage
	}
	line, ok := strings.CutPrefix(line, "I: ")
	if !ok {
		return ""
	}
	for _, s := range []struct{ begins, stage string }{
		{"running apt-get update", "lists"},
		{"downloading packages", "download"},
		{"extracting archives", "unpack"},
		{"installing essential", "essentials"},
		{"installing remaining", "install"},
		{"cleaning package lists", "clean"},
	} {
		if strings.HasPrefix(line, s.begins) {
			return s.stage
		}
	}
	return ""
}

// explainBuild makes of a failed build what people can act upon. What the packages
// themselves are to blame for is EInvalid: trying it again gives the same.
func explainBuild(name, log string, err error) error {
	var me *muster.Error
	if errors.As(err, &me) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	code, hint := muster.EUnavailable, "read the log of the build: "+log
	text := err.Error()
	var failed *jobError
	if errors.As(err, &failed) {
		text = strings.Join(failed.said, "\n")
	}
	has := func(any ...string) bool {
		return slices.ContainsFunc(any, func(part string) bool { return strings.Contains(text, part) })
	}
	switch {
	case has("No space left on device"):
		hint = "free some space on the disk of the image store"
	case has("Temporary failure resolving", "Could not connect", "Failed to fetch", "Could not resolve"):
		hint = "check the way to the mirror (http_proxy, --mirror); " + hint
	case has("killed by signal", "Cannot allocate memory", "Out of memory"):
		hint = "look for memory on the server; " + hint
	case has("Unable to locate package", "has no installation candidate"):
		hint = "correct the packages of the recipe"
	case has("dpkg: error processing package", "dpkg: error processing archive"):
		code = muster.EInvalid
		hint = "leave the package out, or ask for one that needs nothing of what the image leaves out; " + hint
	case has("you have held broken packages", "have unmet dependencies", "Unable to correct problems"):
		code = muster.EInvalid
		hint = "the packages do not go together: leave one out; " + hint
	}
	return muster.Errorf(code, "image %s was not built: %v", name, err).Because(muster.ReasonBuildFailed).WithHint("%s", hint).Wrap(err)
}

// describe reads a finished root file system into a manifest without files.
func describe(root string, rec *Recipe) (*muster.Image, error) {
	m := &muster.Image{
		Format: Format, Name: rec.Name, Summary: rec.Summary, Recipe: rec.Hash(),
		Architecture: rec.Requires.Architecture, Distribution: rec.Base.Distribution, Suite: rec.Base.Suite,
		Requires: muster.ImageNeeds{Memory: rec.Requires.Memory, CPULevel: rec.Requires.CPULevel, Devices: rec.Requires.Devices},
		UserRoot: rec.UserRoot, Agent: rec.Agent, NamespaceMasks: rec.NSMasks,
	}
	for _, a := range rec.Accounts {
		m.Accounts = append(m.Accounts, muster.ImageAccount{Name: a.Name, UID: a.UID, GID: a.GID})
	}
	if err := inspect(root, m); err != nil {
		return nil, err
	}
	if rec.Scheduler == "slurm" {
		v := versionOf(m.Packages, "slurmd")
		if v == "" {
			return nil, muster.Errorf(muster.EInvalid, "recipe %s says scheduler: slurm but installs no slurmd", rec.Name).Because(muster.ReasonBadRecipe).WithHint("add slurmd to its packages")
		}
		m.Slurm = upstream(v)
	}
	if rec.Kernel != KernelNone {
		release, err := kernelRelease(root)
		if err != nil {
			return nil, err
		}
		m.Kernel = release
	}
	m.ID = contentID(m.Recipe, "", nil, m.Architecture, m.Packages)
	return m, nil
}

// inspect reads what the files of a root file system tell: packages, system,
// size.
func inspect(root string, m *muster.Image) error {
	in, err := os.OpenRoot(root)
	if err != nil {
		return storeError("read the new root file system", err)
	}
	defer func() { _ = in.Close() }() // only read
	status, err := openRegular(in, "var/lib/dpkg/status", os.O_RDONLY)
	if err != nil {
		return storeError("read the package list", err)
	}
	defer status.Close()
	if m.Packages, err = readStatus(status); err != nil {
		return fmt.Errorf("read the package list: %w", err)
	}
	if m.Names, err = accountNames(in); err != nil {
		return err
	}
	if release, err := readRegular(in, "usr/lib/os-release"); err == nil {
		m.System = prettyName(string(release))
	}
	m.Uncompressed, err = treeSize(root)
	return err
}

// prettyName is PRETTY_NAME of an os-release file.
func prettyName(release string) string {
	for line := range strings.Lines(release) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "PRETTY_NAME="); ok {
			return clip(strings.Trim(v, `"'`))
		}
	}
	return ""
}
