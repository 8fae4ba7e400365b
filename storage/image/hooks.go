package image

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// epoch is the time of every file that a build makes rather than a package
// brings: builds on different days give the same bytes.
func epoch() time.Time { return time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC) }

// writeHooks puts into dir the scripts that mmdebstrap calls and what they use.
func writeHooks(dir, cache, mirror string, rec *Recipe) error {
	first, early, late := &bytes.Buffer{}, &bytes.Buffer{}, &bytes.Buffer{}
	var apt, before, after []File
	for _, f := range rec.Files {
		switch {
		case f.Mirror != "": // fetched by the last hook
		case f.Early && strings.HasPrefix(f.Path, "/etc/apt/"):
			apt = append(apt, f)
		case f.Early:
			before = append(before, f)
		default:
			after = append(after, f)
		}
	}
	after = append(after,
		File{Path: "/etc/systemd/system-preset/00-muster.preset", Mode: 0o644, Content: presets(rec.Keep)},
		File{Path: excludeFile, Mode: 0o644, Content: dpkgExcludes(rec.Exclude)},
		File{Path: trimmedFile, Mode: 0o644, Content: strings.Join(rec.Trim, "\n") + "\n"},
		File{Path: "/etc/apt/apt.conf.d/50-muster", Mode: 0o644, Content: "APT::Install-Recommends \"false\";\nAcquire::Languages \"none\";\n"},
	)
	if err := errors.Join(writeTar(first, apt), writeTar(early, before), writeTar(late, after)); err != nil {
		return err
	}
	passwd, shadow, group, gshadow := accountLines(rec.Accounts)
	out := map[string]string{
		"first.tar": first.String(), "early.tar": early.String(), "late.tar": late.String(),
		"passwd": passwd, "shadow": shadow, "group": group, "gshadow": gshadow,
		"setup.sh": setupScript(cache), "essential.sh": essentialScript, "customize.sh": customizeScript(rec, cache, mirror),
		"sources.list": strings.Join(sources(rec.Base, ""), "\n") + "\n",
	}
	for i, c := range rec.Commands {
		out[fmt.Sprintf("command-%03d", i)] = c.Run
	}
	var all error
	for name, content := range out {
		all = errors.Join(all, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	return all
}

func writeTar(out *bytes.Buffer, files []File) error {
	w := tar.NewWriter(out)
	for _, f := range files {
		h := &tar.Header{
			Typeflag: tar.TypeReg, Name: "." + f.Path, Mode: int64(f.Mode), Size: int64(len(f.Content)),
			ModTime: epoch(), Uname: "root", Gname: "root", Format: tar.FormatPAX,
		}
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		if _, err := w.Write([]byte(f.Content)); err != nil {
			return err
		}
	}
	return w.Close()
}

// presets let only the kept units be enabled.
func presets(keep []string) string {
	var b strings.Builder
	for _, u := range keep {
		b.WriteString("enable " + u + "\n")
	}
	b.WriteString("disable *\n")
	return b.String()
}

func accountLines(accounts []Account) (passwd, shadow, group, gshadow string) {
	for _, a := range accounts {
		if a.UID >= 0 {
			passwd += fmt.Sprintf("%s:x:%d:%d::%s:%s\n", a.Name, a.UID, a.GID, a.Home, a.Shell)
			shadow += a.Name + ":!*:20000::::::\n"
		}
		if a.Group {
			group += fmt.Sprintf("%s:x:%d:\n", a.Name, a.GID)
			gshadow += a.Name + ":!::\n"
		}
	}
	return passwd, shadow, group, gshadow
}

// quote makes one shell word of s.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// isSource reports whether a file names mirrors to apt before it fetches its lists.
func (f File) isSource() bool {
	return f.Early && strings.HasPrefix(f.Path, "/etc/apt/sources.list.d/")
}

// setupScript gives apt the sources that the recipe brings, and the packages that were
// downloaded before. The latter are links: nothing is copied, and deleting one in the chroot
// keeps the other. apt runs outside the chroot here: the keys that sources name are below it.
func setupScript(cache string) string {
	return `set -eu
tar --keep-directory-symlink --no-same-owner -xpf "${0%/*}/first.tar" -C "$1"
find "$1/etc/apt/sources.list.d" -type f -exec sed -i -E \
	-e "s#^(Signed-By:[[:space:]]*)/#\1$1/#" -e "s#(signed-by=)/etc/#\1$1/etc/#" {} +
mkdir -p "$1/var/cache/apt/archives"
find ` + quote(cache) + ` -name '*.deb' -exec ln -t "$1/var/cache/apt/archives" {} +
`
}

// essentialScript runs when the essential packages are there and before all
// others: accounts get their fixed numbers before a package would choose some.
const essentialScript = `set -eu
here=${0%/*}
for f in passwd group shadow gshadow; do
	[ -e "$1/etc/$f" ] || continue
	cat "$here/$f" >> "$1/etc/$f"
done
chroot "$1" tar --keep-directory-symlink --no-same-owner -xpf - -C / < "$here/early.tar"
`

// customizeScript runs when all packages are there.
func customizeScript(rec *Recipe, cache, mirror string) string {
	var b strings.Builder
	b.WriteString(`set -eu
here=${0%/*}
root=$1
# Commands run without a network, with a name that always resolves, and in a
# process namespace of their own: no daemon that they start outlives them.
inside() {
	unshare --net --uts --mount --pid --fork --kill-child --mount-proc="$root/proc" /bin/sh -euc '
		hostname localhost
		root=$1; shift
		if [ -x "$root/usr/sbin/ip" ] || [ -x "$root/sbin/ip" ]; then chroot "$root" ip link set lo up; fi
		exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive chroot "$root" "$@"
	' sh "$root" "$@" < /dev/null
}
echo 'muster: stage keep'
find "$root/var/cache/apt/archives" -maxdepth 1 -name '*.deb' -exec sh -c '
	cache=$1; shift
	for f; do [ -e "$cache/${f##*/}" ] || ln "$f" "$cache/${f##*/}" 2> /dev/null || :; done
' sh ` + quote(cache) + ` {} +
echo 'muster: stage files'
chroot "$root" tar --keep-directory-symlink --no-same-owner -xpf - -C / < "$here/late.tar"
`)
	b.WriteString(fetchScript(rec.Files, cache, mirror))
	b.WriteString(`rm -f "$root/etc/apt/sources.list" "$root"/etc/apt/sources.list.d/* "$root"/etc/dpkg/dpkg.cfg.d/99mmdebstrap
chroot "$root" tar --keep-directory-symlink --no-same-owner -xpf - -C / < "$here/first.tar"
cat "$here/sources.list" > "$root/etc/apt/sources.list"
chmod 644 "$root/etc/apt/sources.list"
if [ -x "$root/usr/bin/systemctl" ] || [ -x "$root/bin/systemctl" ]; then
	inside systemctl --quiet preset-all
`)
	if len(rec.Mask) > 0 {
		b.WriteString("\tinside systemctl --quiet mask")
		for _, u := range rec.Mask {
			b.WriteString(" " + quote(u))
		}
		b.WriteString("\n")
	}
	b.WriteString("fi\n")
	for i, c := range rec.Commands {
		name := c.Name
		if name == "" {
			name = fmt.Sprintf("command %d", i+1)
		}
		fmt.Fprintf(&b, "echo %s\n", quote("muster: stage "+name))
		fmt.Fprintf(&b, `inside /bin/sh -euc "$(cat "$here/command-%03d")"`+"\n", i)
	}
	return b.String()
}
