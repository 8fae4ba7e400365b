package volume

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/muster-hpc/muster"
)

// maxSource is more than any export has.
const maxSource = 256

var (
	pathForm = regexp.MustCompile(`^(/[A-Za-z0-9_][A-Za-z0-9._-]*)+$`)
	hostForm = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*$`)
	sixForm  = regexp.MustCompile(`^\[[0-9A-Fa-f:]+\]$`)
)

// Source is an export of a file server.
type Source struct {
	Host string // as it is written: a name, or an address; one of IPv6 in brackets
	Path string
}

// String is host:/path.
func (s Source) String() string { return s.Host + ":" + s.Path }

// ParseSource reads host:/export. EInvalid reports what is wrong with it.
func ParseSource(s string) (Source, error) {
	e := muster.Errorf(muster.EInvalid, "%.80q is not an export", s).Because(muster.ReasonBadValue)
	hint := "write it as the server exports it: filer.example:/export/project"
	at := strings.LastIndex(s, ":/")
	if at < 0 || len(s) > maxSource {
		return Source{}, e.WithHint("%s", hint)
	}
	out := Source{Host: s[:at], Path: s[at+1:]}
	if len(out.Host) > 253 || !hostForm.MatchString(out.Host) && !sixForm.MatchString(out.Host) {
		return Source{}, e.WithHint("%s", hint)
	}
	if out.Path == "/" {
		return Source{}, e.WithHint("the root of a server holds everybody's data: name one export")
	}
	if !pathForm.MatchString(out.Path) || path.Clean(out.Path) != out.Path {
		return Source{}, e.WithHint("%s; letters, digits, dots, hyphens and underscores", hint)
	}
	return out, nil
}

// Overlaps reports whether one export lies in the other, or is it.
func (s Source) Overlaps(o Source) bool {
	if !strings.EqualFold(s.Host, o.Host) {
		return false
	}
	return s.Path == o.Path || strings.HasPrefix(s.Path, o.Path+"/") || strings.HasPrefix(o.Path, s.Path+"/")
}

// freeName is the nth name to try for a volume of a cluster.
func freeName(cluster string, kind muster.VolumeKind, n int) string {
	if n == 0 {
		return fmt.Sprintf("%s-%s", cluster, kind)
	}
	return fmt.Sprintf("%s-%s-%d", cluster, kind, n+1)
}
