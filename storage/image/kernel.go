package image

import (
	"archive/tar"
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	muster "github.com/muster-hpc/muster"
)

// Kernel is which of Debian's kernels an image has.
type Kernel string

// Kernels.
const (
	KernelNone    Kernel = ""        // none: the image runs in namespaces only
	KernelGeneric Kernel = "generic" // drivers for real servers
	KernelCloud   Kernel = "cloud"   // smaller, with the drivers of virtual machines alone
)

// pkg is the package that brings the newest one.
func (k Kernel) pkg(architecture string) string {
	if k == KernelCloud {
		return "linux-image-cloud-" + architecture
	}
	return "linux-image-" + architecture
}

// kernel reads which kernel a recipe wants. A plain yes is the one for real servers.
func (r *reader) kernel(n *yaml.Node, path string) Kernel {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!bool" {
		if r.boolean(n, path) {
			return KernelGeneric
		}
		return KernelNone
	}
	switch s := r.text(n, path); s {
	case "":
		return KernelNone
	case string(KernelGeneric):
		return KernelGeneric
	case string(KernelCloud):
		return KernelCloud
	default:
		r.fail(n, path, "generic, cloud, or leave it out for an image without one", "%q is not a kernel", clip(s))
		return KernelNone
	}
}

// kernelRelease is the release of the one kernel that is installed.
func kernelRelease(root string) (string, error) {
	in, err := os.OpenRoot(root)
	if err != nil {
		return "", storeError("read the new root file system", err)
	}
	defer func() { _ = in.Close() }() // only read
	name, err := newest(in.FS(), "boot/vmlinuz-*")
	if err != nil {
		return "", muster.Errorf(muster.EInvalid, "the recipe wants a kernel, but its packages brought none").Because(muster.ReasonBadRecipe).Wrap(err)
	}
	return strings.TrimPrefix(path.Base(name), "vmlinuz-"), nil
}

// extractKernel copies a kernel's files from root to out and fills m.Modaliases.
// An initrd is optional: a recipe may leave out the tool that makes it. The modules of a
// base ("" for none) serve an image that has the same ones.
func extractKernel(root, out, base string, m *muster.Image) error {
	in, err := os.OpenRoot(root)
	if err != nil {
		return storeError("read the new root file system", err)
	}
	defer func() { _ = in.Close() }() // only read
	if err := copyOut(in, "boot/vmlinuz-"+m.Kernel, filepath.Join(out, "vmlinuz")); err != nil {
		return fmt.Errorf("extract the kernel: %w", err)
	}
	err = copyOut(in, "boot/initrd.img-"+m.Kernel, filepath.Join(out, "initrd.img"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("extract the initrd: %w", err)
	}
	// They are beside the root file system now, which is kept in memory on a bare
	// machine: there is no need for them twice.
	for _, name := range []string{"vmlinuz-", "initrd.img-", "System.map-"} {
		if err := in.Remove("boot/" + name + m.Kernel); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("extract the kernel: %w", err)
		}
	}
	modules := modulesOf(m.Kernel)
	if err := keepModules(in, modules, filepath.Join(out, modulesFile), base); err != nil {
		return fmt.Errorf("extract the modules: %w", err)
	}
	aliases, err := openRegular(in, modules+"/modules.alias", os.O_RDONLY)
	if err != nil {
		return fmt.Errorf("extract the module aliases: %w", err)
	}
	defer aliases.Close()
	if m.Modaliases, err = readAliases(aliases); err != nil {
		return fmt.Errorf("extract the module aliases: %w", err)
	}
	builtin, err := readRegular(in, modules+"/modules.builtin.modinfo")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("extract the aliases of built-in drivers: %w", err)
	}
	m.Modaliases = sortedSet(append(m.Modaliases, builtinAliases(builtin)...))
	return nil
}

// putKernel puts the kernel of a base, which is beside its root file system, where a
// kernel is in a root that was derived from it.
func (s *Store) putKernel(root string, base, m *muster.Image) error {
	f, ok := base.File(muster.FileKernel)
	if !ok || m.Kernel != base.Kernel {
		return nil
	}
	to, err := os.OpenRoot(root)
	if err != nil {
		return storeError("read the new root file system", err)
	}
	defer func() { _ = to.Close() }()
	if err := to.MkdirAll("boot", 0o755); err != nil {
		return storeError("place the kernel", err)
	}
	from, err := os.Open(filepath.Join(s.Path(base.ID), f.Name))
	if err != nil {
		return storeError("place the kernel", err)
	}
	defer from.Close()
	out, err := to.OpenFile("boot/vmlinuz-"+base.Kernel, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return storeError("place the kernel", err)
	}
	_, err = io.Copy(out, from)
	if err = errors.Join(err, out.Close()); err != nil {
		return storeError("place the kernel", err)
	}
	return nil
}

// unlisted is what a driver drives that some kernel of Debian has inside itself. Before
// Linux 6.17 a kernel tells the names of such drivers, and not what they drive. "" for others.
func unlisted(driver string) string {
	switch driver {
	case "ahci":
		return "pci:v*d*sv*sd*bc01sc06i01*"
	case "nvme":
		return "pci:v*d*sv*sd*bc01sc08i02*"
	case "virtio_blk":
		return "virtio:d00000002v*"
	case "virtio_net":
		return "virtio:d00000001v*"
	case "virtio_scsi":
		return "virtio:d00000008v*"
	}
	return ""
}

// builtinAliases lists the device patterns of the drivers inside the kernel
// itself: NAME.alias=PATTERN, each ended by a zero byte.
func builtinAliases(modinfo []byte) []string {
	var out []string
	for _, entry := range strings.Split(string(modinfo), "\x00") {
		field, value, _ := strings.Cut(entry, "=")
		name, what, ok := strings.Cut(field, ".")
		switch {
		case ok && what == "alias" && decisiveBus(value):
			out = append(out, value)
		case ok && what == "file" && unlisted(name) != "":
			out = append(out, unlisted(name))
		}
	}
	return out
}

// decisiveBus reports whether an alias is of a bus whose devices decide whether a
// machine works.
func decisiveBus(alias string) bool {
	bus, _, _ := strings.Cut(alias, ":")
	return slices.Contains([]string{"pci", "virtio", "vmbus", "xen", "nvme"}, bus)
}

func copyOut(in *os.Root, from, to string) (err error) {
	src, err := openRegular(in, from, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dst.Close()) }()
	_, err = io.Copy(dst, src)
	return err
}

// keepModules makes the archive of a kernel's modules. One of a base with the same modules
// is taken as it is: a boot needs one initramfs less.
func keepModules(in *os.Root, dir, to, base string) error {
	if base == "" {
		return tarModules(in, dir, to)
	}
	theirs, err := archivedModules(base)
	if err != nil {
		return err
	}
	var ours []string
	err = fs.WalkDir(in.FS(), dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && isModule(name) {
			ours = append(ours, strings.TrimSuffix(name, ".xz"))
		}
		return err
	})
	if err != nil {
		return err
	}
	slices.Sort(ours)
	if slices.Equal(ours, theirs) {
		return os.Link(base, to)
	}
	return tarModules(in, dir, to)
}

// archivedModules are the names of an archive's modules, sorted, as they are unpacked.
func archivedModules(file string) (names []string, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for t := tar.NewReader(f); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			slices.Sort(names)
			return names, nil
		}
		if err != nil {
			return nil, err
		}
		if isModule(h.Name) {
			names = append(names, strings.TrimSuffix(h.Name, ".xz"))
		}
	}
}

func isModule(name string) bool {
	return strings.HasSuffix(name, ".ko") || strings.HasSuffix(name, ".ko.xz")
}

// tarModules packs a directory of modules with names as they are below the
// root, in order, with steady times.
func tarModules(in *os.Root, dir, to string) (err error) {
	dst, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dst.Close()) }()
	w := tar.NewWriter(dst)
	err = fs.WalkDir(in.FS(), dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err // links to sources and build trees are of no use at boot
		}
		f, err := openRegular(in, name, os.O_RDONLY)
		if err != nil {
			return err
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return err
		}
		h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: info.Size(), ModTime: epoch(), Format: tar.FormatPAX}
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		_, err = io.Copy(w, f)
		return err
	})
	return errors.Join(err, w.Close())
}

// readAliases lists the device patterns of a modules.alias file, sorted, for
// the buses whose devices decide whether a machine works.
func readAliases(r io.Reader) ([]string, error) {
	var out []string
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if len(f) != 3 || f[0] != "alias" {
			continue
		}
		if decisiveBus(f[1]) {
			out = append(out, f[1])
		}
	}
	slices.Sort(out)
	return slices.Compact(out), lines.Err()
}
