package image

import (
	"regexp"
	"strings"
)

// The expressions follow Debian policy 5.6.1 and 5.6.12.
var (
	packageName    = regexp.MustCompile(`^[a-z0-9][a-z0-9+.-]{1,99}$`)
	packageVersion = regexp.MustCompile(`^([0-9]+:)?[0-9][A-Za-z0-9.+~-]{0,99}$`)
)

// CheckPackage says what is wrong with a package as requests and recipes name
// it ("libfftw3-dev" or "libfftw3-dev=3.3.10-1"), or "" when nothing is.
//
// A name must not end in "-": apt would remove that package instead. It cannot
// begin with "-", so it is never taken for an option.
func CheckPackage(spec string) string {
	name, version, pinned := strings.Cut(spec, "=")
	switch {
	case !packageName.MatchString(name):
		return "not the name of a Debian package: lower-case letters, digits, '+', '-' and '.', beginning with a letter or digit"
	case strings.HasSuffix(name, "-"):
		return "the name of a package cannot end in '-'"
	case pinned && !packageVersion.MatchString(version):
		return "not a Debian version after '='"
	}
	return ""
}
