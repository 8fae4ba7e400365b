package spec

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
)

// Limits of volumes in a request.
const (
	maxVolumes    = 16
	maxVolumeName = 64
	maxTarget     = 128
	maxRetain     = 366 * 24 * time.Hour
)

var (
	volumeID   = regexp.MustCompile(`^v-[a-z0-9]{10}$`)
	targetForm = regexp.MustCompile(`^(/[A-Za-z0-9_][A-Za-z0-9._-]*)+$`)
)

// volumes judges what a request says about its home and what it mounts.
func (v *validator) volumes(home, quota, retain string, list []string, d Defaults, s *muster.Spec) {
	if home != "" {
		v.fault("home", checkVolume(home))
		s.Home = home
	}
	if quota != "" {
		q, f := size(quota)
		switch {
		case f != nil:
			v.fault("home_quota", f)
		case q < 1<<20:
			v.add(muster.ReasonOutOfRange, "home_quota", "write a size such as 10GiB, or leave it out for no bound", "%q is too little for a home", short(quota))
		case home != "":
			v.add(muster.ReasonContradiction, "home_quota", "leave out one of them", "home names a volume that exists, which keeps its quota")
		}
		s.HomeQuota = q
	}
	switch {
	case d.Retain == 0:
		s.Retain = muster.Duration(muster.DefaultRetain)
	case d.Retain > 0:
		s.Retain = muster.Duration(d.Retain)
	}
	if retain != "" {
		v.retain(retain, s)
	}
	if len(list) > maxVolumes {
		v.add(muster.ReasonTooMany, "volumes", "", "%d entries; at most %d are possible", len(list), maxVolumes)
		return
	}
	for i, text := range list {
		at := fmt.Sprintf("volumes[%d]", i)
		use, f := ParseVolumeUse(text)
		switch {
		case f != nil:
			v.add(f.Reason, at, f.Hint, "%s", f.Message)
			continue
		case slices.ContainsFunc(s.Volumes, func(o muster.VolumeUse) bool { return o.Volume == use.Volume }):
			v.add(muster.ReasonGivenTwice, at, "keep one", "%s is given twice", use.Volume)
		}
		for _, o := range s.Volumes {
			if nested(o.Target, use.Target) {
				v.add(muster.ReasonContradiction, at, "mount them beside each other, such as /data/one and /data/two", "%s and %s lie in each other", o.Target, use.Target)
				break
			}
		}
		s.Volumes = append(s.Volumes, use)
	}
}

func (v *validator) retain(text string, s *muster.Spec) {
	if text == "0" {
		s.Retain = 0
		return
	}
	d, f := duration(text)
	switch {
	case f != nil:
		v.add(f.why, "retain", "write 7d, or 0 for not at all", "%s", f.message)
	case d > maxRetain:
		v.add(muster.ReasonOutOfRange, "retain", "an administrator can keep a volume longer: muster volume retain", "%q is too long; the most is %s", short(text), FormatDuration(maxRetain))
	}
	s.Retain = muster.Duration(d)
}

// ParseVolumeUse reads a volume of a request: its name or ID, where it is
// mounted (/data/NAME if left out), and ro for read-only: inputs:/data:ro. The
// error has code EInvalid.
func ParseVolumeUse(s string) (muster.VolumeUse, *muster.Error) {
	bad := func(f *fault) (muster.VolumeUse, *muster.Error) {
		return muster.VolumeUse{}, f.error()
	}
	parts := strings.Split(s, ":")
	use := muster.VolumeUse{Volume: parts[0]}
	if f := checkVolume(use.Volume); f != nil {
		return bad(f)
	}
	parts = parts[1:]
	if n := len(parts); n > 0 {
		switch parts[n-1] {
		case "ro":
			use.ReadOnly = true
			parts = parts[:n-1]
		case "rw":
			parts = parts[:n-1]
		}
	}
	switch len(parts) {
	case 0:
		use.Target = "/data/" + use.Volume
	case 1:
		use.Target = parts[0]
	default:
		return bad(faultf("write NAME, NAME:/PLACE or NAME:/PLACE:ro", "%q does not say where a volume goes", short(s)))
	}
	if f := checkTarget(use.Target); f != nil {
		return bad(f)
	}
	return use, nil
}

// CheckVolumeName judges the name of a volume that is to be made.
func CheckVolumeName(s string) *muster.Error {
	f := checkVolume(s)
	if f == nil && volumeID.MatchString(s) {
		f = faultf("choose another", "%q looks like the ID of a volume", s).because(muster.ReasonNameReserved)
	}
	if f == nil {
		return nil
	}
	return f.error()
}

// checkVolume judges what is to name a volume, or is its ID.
func checkVolume(s string) *fault {
	if s == "" || len(s) > maxVolumeName || !nameForm.MatchString(s) {
		return faultf("lower-case letters, digits and hyphens, a letter or digit first and last; `muster volume list` shows them",
			"%q cannot be a volume", short(s)).because(muster.ReasonBadName)
	}
	return nil
}

// checkTarget judges where a volume is to be seen inside: an absolute path that
// hides nothing which a node needs.
func checkTarget(s string) *fault {
	switch {
	case len(s) > maxTarget || !targetForm.MatchString(s) || path.Clean(s) != s:
		return faultf("write an absolute path of letters, digits, dots, hyphens and underscores, such as /data",
			"%q is not a mount path", short(s))
	case s == "/home" || strings.HasPrefix(s, "/home/"):
		return faultf("/home is the home of the cluster: use another place, such as /data", "a volume cannot be mounted at %s", s)
	case slices.Contains(systemPlaces(), strings.Split(s, "/")[1]):
		return faultf("it belongs to the system: use another place, such as /data", "a volume cannot be mounted at %s", s)
	case slices.Contains([]string{"/opt", "/mnt", "/media", "/srv"}, s):
		return faultf("take a directory below it: "+s+"/data", "a volume cannot be mounted at %s", s)
	}
	return nil
}

// systemPlaces are top directories in which nothing may be hidden.
func systemPlaces() []string {
	return []string{
		"bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "libx32", "lost+found", "muster",
		"proc", "root", "run", "sbin", "sys", "tmp", "usr", "var",
	}
}

// nested reports whether one place lies in the other, or is it.
func nested(a, b string) bool {
	return a == b || strings.HasPrefix(a, b+"/") || strings.HasPrefix(b, a+"/")
}
