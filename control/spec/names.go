package spec

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/muster-hpc/muster"
)

// Limits on names.
const (
	maxName    = 32
	maxPattern = 128
)

var (
	nameForm     = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)
	clusterID    = regexp.MustCompile(`^c-[a-z0-9]{10}$`)
	versionForm  = regexp.MustCompile(`^([0-9]+:)?[0-9][A-Za-z0-9.+~-]*$`)
	packageForm  = regexp.MustCompile(`^[a-z0-9][a-z0-9+.-]*[a-z0-9+.]$`)
	imageForm    = regexp.MustCompile(`^[a-z0-9]([a-z0-9._-]*[a-z0-9])?$`)
	imageID      = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
	projectForm  = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_])?$`)
	notNameChars = regexp.MustCompile(`[^a-z0-9]+`)
)

// checkName judges the name of a cluster: it becomes part of host names.
func checkName(s string) *fault {
	switch {
	case s == "":
		return faultf("write: name: NAME", "the request has no name").because(muster.ReasonRequired)
	case len(s) > maxName:
		return faultf("", "the name has %d characters; at most %d are possible", len(s), maxName).because(muster.ReasonTooLarge)
	case !nameForm.MatchString(s):
		hint := "lower-case letters, digits and hyphens, a letter or digit first and last"
		if better := strings.Trim(notNameChars.ReplaceAllString(strings.ToLower(s), "-"), "-"); better != "" && isASCII(s) {
			hint = fmt.Sprintf("write %s: %s", better, hint)
		}
		return faultf(hint, "%q cannot be a name", cut(s)) // %q escapes what moves a cursor.because(muster.ReasonBadName)
	case clusterID.MatchString(s):
		return faultf("choose another", "%q looks like the ID of a cluster", s).because(muster.ReasonNameReserved)
	}
	return nil
}

// isASCII reports whether no letter is lost when only a-z are kept.
func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r > '~' })
}

// CheckProject judges the name of a project.
func CheckProject(s string) (string, *muster.Problem) {
	if f := checkProject(s); f != nil {
		return s, &muster.Problem{Field: "project", Reason: f.why, Message: f.message, Hint: f.hint}
	}
	return s, nil
}

func checkProject(s string) *fault {
	if s != "" && (len(s) > 64 || !projectForm.MatchString(s)) {
		return faultf("letters, digits, hyphens, dots and underscores, at most 64", "%q cannot be a project", short(s)).because(muster.ReasonBadName)
	}
	return nil
}

// checkUser judges the name of a person who will log in.
func checkUser(s string) *fault {
	if e := muster.CheckUserName(s); e != nil {
		return faultf(e.Hint, "%s", e.Message).because(e.Reason)
	}
	return nil
}

// checkPackage judges the name of a Debian package, perhaps with =VERSION.
func checkPackage(s string) *fault {
	name, version, pinned := strings.Cut(s, "=")
	switch {
	case s == "":
		return faultf("", "a package has no name").because(muster.ReasonRequired)
	case pinned && (len(version) > 100 || !versionForm.MatchString(version)):
		return faultf("such as libfftw3-dev=3.3.10-2, as apt-cache policy prints it", "%q: what follows = is not a version", short(s)).because(muster.ReasonBadName)
	case strings.ContainsAny(name, "/:"):
		return faultf("write the name alone, or NAME=VERSION", "%q: releases and architectures cannot be asked for", short(s)).because(muster.ReasonBadName)
	case len(name) > 100 || !packageForm.MatchString(name):
		return faultf("lower-case letters, digits and + - . as Debian names its packages", "%q cannot be a package", short(s)).because(muster.ReasonBadName)
	}
	return nil
}

func checkImage(s string) *fault {
	v, ok, err := muster.ParseImageVersion(s)
	var e *muster.Error
	if errors.As(err, &e) {
		return faultf(e.Hint, "%s", e.Message).because(e.Reason)
	}
	if ok {
		s = v.Name
	}
	switch {
	case ok && strings.HasPrefix(s, "sha256:"):
		return faultf(muster.VersionForms, "%q names a content before the @ already", short(s)).because(muster.ReasonBadName)
	case imageID.MatchString(s), len(s) <= 64 && imageForm.MatchString(s):
		return nil
	case strings.HasPrefix(s, "sha256:"):
		return faultf("write sha256: and all 64 hexadecimal digits, or the name of the image", "%q is not a whole content ID", short(s)).because(muster.ReasonBadName)
	}
	return faultf("lower-case letters, digits, hyphens and dots, or sha256: and 64 hexadecimal digits; IMAGE@2026-11-20 is one of an earlier day", "%q cannot be an image", short(s)).because(muster.ReasonBadName)
}

// checkPattern judges a pattern over names.
func checkPattern(s string) *fault {
	switch {
	case strings.TrimSpace(s) != s:
		return faultf("", "%q has blanks around it", short(s))
	case len(s) > maxPattern:
		return faultf("", "the pattern has %d characters; at most %d are possible", len(s), maxPattern).because(muster.ReasonTooLarge)
	case strings.ContainsAny(s, "[]{}"):
		return faultf(`"*" stands for any text and "?" for one character`, "%q: brackets have no meaning here", short(s))
	}
	for _, r := range s {
		if r < ' ' || r == 0x7f {
			return faultf("", "%q has a control character", short(s))
		}
	}
	return nil
}
