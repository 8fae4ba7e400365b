package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/storage/image"
)

// content IMAGE DAY PACKAGE VERSION [nothing]: add a content of an image that was built that
// day, in which the package has that older version and is a script that prints it. With
// "nothing" it has no system in it, and can be listed and removed, but not booted. The image
// store becomes the script's own, with the newest content of the image.
func content(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 4 && len(args) != 5 {
		ts.Fatalf("usage: content IMAGE DAY PACKAGE VERSION [nothing]")
	}
	day, err := time.Parse(time.DateOnly, args[1])
	ts.Check(err)
	images := filepath.Join(of(ts).state, "images")
	own(ts, images, args[0])
	store, err := image.Open(images, nil)
	ts.Check(err)
	newest, err := store.Resolve(args[0])
	ts.Check(err)
	m := *newest
	m.Created = day.Add(12 * time.Hour)
	m.Packages = slices.Clone(newest.Packages)
	at := slices.IndexFunc(m.Packages, func(p muster.ImagePackage) bool { return p.Name == args[2] })
	if at < 0 {
		ts.Fatalf("%s has no package %s", args[0], args[2])
	}
	m.Packages[at].Version = args[3]
	m.ID = image.ContentID(&m)
	to := store.Path(m.ID)
	ts.Check(os.Mkdir(to, 0o700))
	root := filepath.Join(to, "root.squashfs")
	if len(args) == 5 {
		ts.Check(os.WriteFile(root, []byte(args[1]), 0o400))
	} else {
		downgrade(ts, filepath.Join(store.Path(newest.ID), "root.squashfs"), root, m.Packages[at])
	}
	m.Files = slices.Clone(newest.Files)
	for i, f := range m.Files {
		name := filepath.Join(to, f.Name)
		if f.Role != muster.FileRoot {
			ts.Check(os.Link(filepath.Join(store.Path(newest.ID), f.Name), name))
			continue
		}
		data, err := os.ReadFile(name)
		ts.Check(err)
		sum := sha256.Sum256(data)
		m.Files[i].Size, m.Files[i].SHA256 = int64(len(data)), hex.EncodeToString(sum[:])
	}
	data, err := image.EncodeManifest(&m)
	ts.Check(err)
	ts.Check(os.WriteFile(filepath.Join(to, "manifest.json"), data, 0o600))
}

// own gives a script an image store of its own, with one image.
func own(ts *testscript.TestScript, images, name string) {
	shared, err := os.Readlink(images)
	if err != nil {
		return // it has one already
	}
	store, err := image.Open(shared, nil)
	ts.Check(err)
	m, err := store.Resolve(name)
	ts.Check(err)
	ts.Check(os.Remove(images))
	ts.Check(os.MkdirAll(filepath.Join(images, "names"), 0o700))
	for _, file := range []string{m.ID.Hex(), "names/" + name + ".json"} {
		ts.Check(ts.Exec("cp", "-a", filepath.Join(shared, file), filepath.Join(images, file)))
	}
}

// downgrade makes of one root file system another, in which a package is older: it is built
// and installed by the system's own dpkg.
func downgrade(ts *testscript.TestScript, from, to string, p muster.ImagePackage) {
	work := ts.MkAbs("downgrade")
	ts.Check(os.Mkdir(work, 0o755))
	cmd := exec.Command("unshare", "--mount", "--propagation", "private", "sh", "-eu", "-c", `
mkdir low up work root
mount -t squashfs -o loop,ro "$FROM" low
mount -t overlay overlay -o lowerdir=low,upperdir=up,workdir=work root
mkdir -p root/tmp/p/DEBIAN root/tmp/p/usr/bin
printf 'Package: %s\nVersion: %s\nArchitecture: %s\nMaintainer: nobody <nobody@localhost>\nDescription: an older one\n' "$NAME" "$VERSION" "$ARCH" >root/tmp/p/DEBIAN/control
printf '#!/bin/sh\necho %s %s\n' "$NAME" "$VERSION" >root/tmp/p/usr/bin/"$NAME"
chmod 755 root/tmp/p/usr/bin/"$NAME"
chroot root dpkg-deb --root-owner-group -Znone -b /tmp/p /tmp/p.deb
chroot root dpkg -i /tmp/p.deb
rm -r root/tmp/p root/tmp/p.deb
mksquashfs root "$TO" -noappend -no-progress -quiet -no-exports -comp zstd -Xcompression-level 1
`)
	cmd.Dir = work
	cmd.Env = append(os.Environ(), "FROM="+from, "TO="+to, "NAME="+p.Name, "VERSION="+p.Version, "ARCH="+runtime.GOARCH)
	if out, err := cmd.CombinedOutput(); err != nil {
		ts.Fatalf("%v\n%s", err, out)
	}
	ts.Check(os.Chmod(to, 0o400))
	if err := os.RemoveAll(work); err != nil && !errors.Is(err, fs.ErrNotExist) {
		ts.Fatalf("%v", err)
	}
}
