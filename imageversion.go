package muster

import (
	"regexp"
	"strings"
	"time"
)

// ImageVersion names one content of an image, among those that it had over time: the newest
// that was built before a moment, or the one whose ID begins so.
type ImageVersion struct {
	Name string
	// Before is the end of the day or month that was written, in UTC, and does not belong
	// to it. Zero: Content is set.
	Before time.Time
	// Content is the beginning of a content ID: six hexadecimal digits or more, in lower
	// case, without "sha256:". "": Before is set.
	Content string
}

var (
	versionDay     = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}$`)
	versionMonth   = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}$`)
	versionContent = regexp.MustCompile(`^[0-9a-f]{6,64}$`)
)

// VersionForms is how a content of an image is written.
const VersionForms = "write IMAGE@2026-11-20 (the newest built on that day or before), IMAGE@2026-11 (before the end of that month), " +
	"or IMAGE@ and at least six digits of the content's ID; `muster image versions IMAGE` lists them"

// ParseImageVersion reads IMAGE@2026-11-20, IMAGE@2026-11 or IMAGE@CONTENT. ok is false for
// a reference without "@", which is not an error. It returns EInvalid when what follows the
// "@" is none of these, or nothing stands before it.
func ParseImageVersion(ref string) (v ImageVersion, ok bool, err error) {
	name, text, ok := strings.Cut(ref, "@")
	if !ok {
		return ImageVersion{}, false, nil
	}
	bad := func(format string, args ...any) (ImageVersion, bool, error) {
		return ImageVersion{}, true, Errorf(EInvalid, format, args...).Because(ReasonBadValue).WithHint("%s", VersionForms)
	}
	if name == "" {
		return bad("%.80q names no image before the @", ref)
	}
	v.Name = name
	content := strings.TrimPrefix(strings.ToLower(text), "sha256:")
	switch {
	case versionDay.MatchString(text):
		day, err := time.Parse(time.DateOnly, text)
		if err != nil {
			return bad("%.80q: there is no day %s", ref, text)
		}
		v.Before = day.AddDate(0, 0, 1)
	case versionMonth.MatchString(text):
		month, err := time.Parse("2006-01", text)
		if err != nil {
			return bad("%.80q: there is no month %s", ref, text)
		}
		v.Before = month.AddDate(0, 1, 0)
	case versionContent.MatchString(content):
		v.Content = content
	default:
		return bad("%.80q: what follows the @ is neither a day, a month nor a content ID", ref)
	}
	return v, true, nil
}
