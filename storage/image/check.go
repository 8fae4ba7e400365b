package image

import (
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	muster "github.com/muster-hpc/muster"
)

var (
	recipeName  = regexp.MustCompile(`^[a-z][a-z0-9-]{0,62}$`)
	accountName = regexp.MustCompile(`^[a-z_][a-z0-9_-]{0,30}$`)
	unitName    = regexp.MustCompile(`^[A-Za-z0-9:_.@\\-]{1,200}\.(service|socket|target|timer|mount|automount|path|slice|swap)$`)
	suiteName   = regexp.MustCompile(`^[a-z][a-z0-9-]{0,40}$`)
	pathPattern = regexp.MustCompile(`^/[A-Za-z0-9_./*?+@=-]{1,200}$`)
	mirrorPath  = regexp.MustCompile(`^[a-z][A-Za-z0-9_.+~/-]{0,300}$`)
	devicePat   = regexp.MustCompile(`^[a-z0-9_]{1,20}:[A-Za-z0-9_.,:*?\[\]-]{0,200}$`)
)

// check finds what is wrong with single fields; complete finds what is missing
// once a recipe is resolved.
func check(rec *Recipe) []muster.Problem {
	var c checker
	c.that(recipeName.MatchString(rec.Name), "name", "lower-case letters, digits and '-'", "%q cannot name an image", rec.Name)
	c.that(!looksLikeID(rec.Name), "name", "choose a name that no content ID begins with", "%q could be a content ID", rec.Name)
	c.that(len(rec.Summary) <= 200 && !strings.ContainsAny(rec.Summary, "\n\r\x1b"), "summary", "", "must be one line of at most 200 bytes")
	if rec.Extends != "" {
		c.that(recipeName.MatchString(rec.Extends), "extends", "", "%q cannot name a recipe", rec.Extends)
	}
	c.base(rec)
	for i, p := range rec.Packages {
		why := CheckPackage(p)
		c.that(why == "", fmt.Sprintf("packages[%d]", i), "", "%q: %s", p, why)
	}
	c.accounts(rec.Accounts)
	c.files(rec.Files)
	for i, cmd := range rec.Commands {
		f := fmt.Sprintf("commands[%d]", i)
		c.because(muster.ReasonRequired, cmd.Run != "", f+".run", "", "is missing")
		c.that(len(cmd.Name) <= 60 && !strings.ContainsAny(cmd.Name, "\n\r'\x1b"), f+".name", "", "must be one short line without quotes")
	}
	c.units("services.keep", rec.Keep)
	c.units("services.mask", rec.Mask)
	c.units("namespace_masks", rec.NSMasks)
	c.patterns("exclude", rec.Exclude)
	c.patterns("trim", rec.Trim)
	for i, d := range rec.Requires.Devices {
		c.that(devicePat.MatchString(d), fmt.Sprintf("requires.devices[%d]", i), `for instance "pci:v000010DE*"`, "%q is not a module alias", d)
	}
	c.oneOf("scheduler", rec.Scheduler, "", "slurm", "none")
	c.oneOf("requires.architecture", rec.Requires.Architecture, "", "amd64", "arm64")
	c.that(rec.Agent.Min >= 0 && rec.Agent.Max >= rec.Agent.Min, "agent", "", "min must not be above max")
	return c.problems
}

// complete says what a resolved recipe lacks.
func complete(rec *Recipe) []muster.Problem {
	var c checker
	c.that(!rec.Abstract, "abstract", "build a recipe that extends it", "an abstract recipe cannot be built")
	c.because(muster.ReasonRequired, rec.Base.Suite != "", "base.suite", `for instance "trixie"`, "is missing")
	c.because(muster.ReasonRequired, rec.Scheduler != "", "scheduler", "slurm or none", "is missing")
	c.because(muster.ReasonRequired, rec.Agent.Max > 0, "agent", "", "is missing")
	c.because(muster.ReasonRequired, len(rec.Packages) > 0, "packages", "", "is empty")
	uids, gids := map[int]string{}, map[int]string{}
	for i, a := range rec.Accounts {
		f := fmt.Sprintf("accounts[%d]", i)
		if a.UID >= 0 {
			c.that(uids[a.UID] == "", f+".uid", "", "%d is %s already", a.UID, uids[a.UID])
			uids[a.UID] = a.Name
		}
		if a.Group {
			c.that(gids[a.GID] == "", f+".gid", "", "%d is %s already", a.GID, gids[a.GID])
			gids[a.GID] = a.Name
		}
	}
	return c.problems
}

type checker struct{ problems []muster.Problem }

func (c *checker) that(ok bool, field, hint, format string, args ...any) {
	c.because(muster.ReasonBadValue, ok, field, hint, format, args...)
}

// because is that for another reason than a bad value.
func (c *checker) because(why muster.Reason, ok bool, field, hint, format string, args ...any) {
	if !ok && len(c.problems) < 50 {
		c.problems = append(c.problems, muster.Problem{Field: field, Reason: why, Hint: hint, Message: fmt.Sprintf(format, args...)})
	}
}

func (c *checker) oneOf(field, got string, allowed ...string) {
	c.that(slices.Contains(allowed, got), field, didYouMean(got, allowed), "%q is not one of %s", clip(got), strings.TrimPrefix(strings.Join(allowed, ", "), ", "))
}

func (c *checker) units(field string, units []string) {
	for i, u := range units {
		c.that(unitName.MatchString(u), fmt.Sprintf("%s[%d]", field, i), "", "%q is not a systemd unit", clip(u))
	}
}

func (c *checker) patterns(field string, list []string) {
	for i, p := range list {
		c.that(pathPattern.MatchString(p), fmt.Sprintf("%s[%d]", field, i), "an absolute path, with * and ? as the shell has them", "%q is not a path pattern", clip(p))
	}
}

func (c *checker) base(rec *Recipe) {
	c.oneOf("base.distribution", rec.Base.Distribution, "", "debian")
	c.that(rec.Base.Suite == "" || suiteName.MatchString(rec.Base.Suite), "base.suite", "", "%q is not a suite", clip(rec.Base.Suite))
	for i, s := range rec.Base.Components {
		c.that(suiteName.MatchString(s), fmt.Sprintf("base.components[%d]", i), "", "%q is not a component", clip(s))
	}
	c.mirror("base.mirror", rec.Base.Mirror)
	c.mirror("base.security-mirror", rec.Base.SecurityMirror)
}

func (c *checker) mirror(field, mirror string) {
	if mirror == "" {
		return
	}
	why := checkMirror(mirror)
	c.that(why == "", field, "http://HOST/PATH or https://HOST/PATH", "%s", why)
}

// checkMirror says what is wrong with the address of a mirror. A password in
// it would end up in the image, so there must be none.
func checkMirror(mirror string) string {
	u, err := url.Parse(mirror)
	switch {
	case err != nil || strings.ContainsAny(mirror, " \t\n\"'[]|&\\"):
		return "not a URL"
	case u.User != nil:
		return "a mirror's URL must not carry a password"
	case (u.Scheme != "http" && u.Scheme != "https") || u.Host == "":
		return "must be an http or https URL"
	}
	return ""
}

func (c *checker) accounts(list []Account) {
	for i, a := range list {
		f := fmt.Sprintf("accounts[%d]", i)
		c.that(accountName.MatchString(a.Name), f+".name", "", "%q cannot name an account", clip(a.Name))
		c.because(muster.ReasonOutOfRange, a.UID == -1 || (a.UID >= 1 && a.UID <= 65533), f+".uid", "", "must be 1 to 65533")
		c.that(a.GID >= 0 && a.GID <= 65534, f+".gid", "", "must be 0 to 65534")
		for _, p := range []string{a.Home, a.Shell} {
			c.that(path.IsAbs(p) && path.Clean(p) == p && !strings.ContainsAny(p, ":\n"), f, "", "%q is not an absolute path", clip(p))
		}
	}
}

func (c *checker) files(list []File) {
	seen := map[string]bool{}
	for i, f := range list {
		at := fmt.Sprintf("files[%d].path", i)
		c.that(path.IsAbs(f.Path) && path.Clean(f.Path) == f.Path && f.Path != "/" && !strings.ContainsAny(f.Path, "\n\x00"),
			at, "", "%q is not a clean absolute path", clip(f.Path))
		c.because(muster.ReasonGivenTwice, !seen[f.Path], at, "", "%q is there twice", clip(f.Path))
		seen[f.Path] = true
		if f.From != "" {
			c.that(fs.ValidPath(f.From) && f.From != ".", fmt.Sprintf("files[%d].from", i), "a path from where the recipe is, without . and ..",
				"%q is not a path below the recipe's directory", clip(f.From))
			c.that(f.Content == "", fmt.Sprintf("files[%d].content", i), "", "there is from already")
		}
		if f.Mirror != "" || f.SHA256 != "" {
			c.fetched(f, i)
		}
	}
}

// fetched checks a file that comes from the mirror.
func (c *checker) fetched(f File, i int) {
	c.that(mirrorPath.MatchString(f.Mirror) && path.Clean(f.Mirror) == f.Mirror && !strings.HasPrefix(f.Mirror, "../"),
		fmt.Sprintf("files[%d].mirror", i), "such as pool/main/h/hpcc/hpcc_1.5.0.orig.tar.gz", "%q is not a path on a mirror", clip(f.Mirror))
	c.that(hexDigest.MatchString(f.SHA256), fmt.Sprintf("files[%d].sha256", i), "sha256sum tells it", "%q is not a SHA-256 in hexadecimal", clip(f.SHA256))
	c.that(f.Content == "" && f.From == "" && !f.Early, fmt.Sprintf("files[%d].mirror", i), "", "goes with neither content, from nor early")
}
