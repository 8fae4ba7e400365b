package image

import (
	"fmt"
	"strings"
)

// fetchScript is the part of a hook that brings files from the mirror: with apt's
// own program, which knows the way out, and only with the right bytes. They are
// kept beside the packages, so that the next build needs no network for them.
func fetchScript(files []File, cache, mirror string) string {
	var b strings.Builder
	for _, f := range files {
		if f.Mirror == "" {
			continue
		}
		if b.Len() == 0 {
			b.WriteString(`fetch() { # URL SHA256 PATH MODE
	kept=` + quote(cache) + `/$2
	if ! printf '%s  %s\n' "$2" "$kept" | sha256sum --check --status 2> /dev/null; then
		APT_CONFIG=$here/apt.conf /usr/lib/apt/apt-helper -o APT::Sandbox::User=root download-file "$1" "$kept.$$" "SHA256:$2"
		mv -f "$kept.$$" "$kept"
	fi
	chroot "$root" sh -euc 'mkdir -p "${1%/*}"; cat > "$1"; chmod "$2" "$1"' sh "$3" "$4" < "$kept"
}
echo 'muster: stage fetch'
`)
		}
		fmt.Fprintf(&b, "fetch %s %s %s %04o\n", quote(mirror+"/"+f.Mirror), f.SHA256, quote(f.Path), f.Mode)
	}
	return b.String()
}
