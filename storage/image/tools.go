package image

import (
	"context"
	"os"
	"os/exec"

	muster "github.com/muster-hpc/muster"
)

// tools are the programs of the host that building needs, and whether they run
// in namespaces of their own (always, but in tests of an ordinary user).
type tools struct {
	mmdebstrap string
	mksquashfs string
	unsquashfs string
	aptGet     string
	aptCache   string
	isolate    bool
	confine    []string // starts a program that calls Confine
	bound      func(pid int) (leave func() error, err error)
	apt        func(ctx context.Context) (config, mirror string)
}

func hostTools() tools {
	return tools{mmdebstrap: "mmdebstrap", mksquashfs: "mksquashfs", unsquashfs: "unsquashfs", aptGet: "apt-get", aptCache: "apt-cache", isolate: true, apt: hostApt,
		confine: []string{"/proc/self/exe", ConfineArgument}}
}

// Prerequisite is something that building images needs of the host.
type Prerequisite struct {
	Name    string // mmdebstrap
	Why     string // one line
	OK      bool
	Problem string // what is wrong, when it is not OK
	Package string // Debian or Ubuntu package that brings it, "" if none does
}

// Keyrings where Debian keeps the keys of its archive; newer releases first.
func keyrings() []string {
	return []string{"/usr/share/keyrings/debian-archive-keyring.pgp", "/usr/share/keyrings/debian-archive-keyring.gpg"}
}

// Prerequisites reports what building needs and whether it is there.
func Prerequisites() []Prerequisite {
	out := []Prerequisite{
		program("mmdebstrap", "makes the root file system from Debian packages", "mmdebstrap"),
		program("mksquashfs", "packs the root file system", "squashfs-tools"),
		program("unsquashfs", "unpacks an image to add packages to it", "squashfs-tools"),
		program("apt-get", "downloads packages", "apt"),
		program("unshare", "keeps build commands off the network", "util-linux"),
		program("hostname", "names the place where build commands run", "hostname"),
		program("tar", "copies files into images", "tar"),
		program("find", "sets the times of files", "findutils"),
	}
	out = append(out, keyringPrerequisite(keyrings()))
	root := Prerequisite{Name: "root", Why: "packages are installed as root", OK: os.Geteuid() == 0}
	if !root.OK {
		root.Problem = "this is not root"
	}
	return append(out, root)
}

func program(name, why, pkg string) Prerequisite {
	p := Prerequisite{Name: name, Why: why, Package: pkg}
	if _, err := exec.LookPath(name); err != nil {
		p.Problem = "not installed"
		return p
	}
	p.OK = true
	return p
}

func keyringPrerequisite(paths []string) Prerequisite {
	p := Prerequisite{Name: "Debian archive keys", Why: "prove that packages come from Debian", Package: "debian-archive-keyring"}
	if keyring(paths) == "" {
		p.Problem = "not installed"
		return p
	}
	p.OK = true
	return p
}

// keyring returns the first keyring that is there, or "".
func keyring(paths []string) string {
	for _, k := range paths {
		if info, err := os.Stat(k); err == nil && info.Mode().IsRegular() {
			return k
		}
	}
	return ""
}

// ready returns one error that names everything that is missing.
func ready() error {
	var problems []muster.Problem
	install := ""
	for _, p := range Prerequisites() {
		if p.OK {
			continue
		}
		problems = append(problems, muster.Problem{Field: p.Name, Message: p.Problem})
		if p.Package != "" {
			install += " " + p.Package
		}
	}
	if len(problems) == 0 {
		return nil
	}
	e := muster.Errorf(muster.EUnavailable, "images cannot be built here").Because(muster.ReasonBuildFailed).WithHint("build as root")
	if install != "" {
		e = e.WithHint("apt-get install%s", install)
	}
	return e.Listing(problems)
}
