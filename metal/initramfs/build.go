package initramfs

import (
	"compress/gzip"
	"io"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/muster-hpc/muster"
)

// Compression of an archive. Every kernel of the last ten years reads gzip, those
// since 5.9 zstd, which is smaller and faster to undo.
type Compression string

// Compressions.
const (
	Zstd  Compression = "zstd"
	Gzip  Compression = "gzip"
	Plain Compression = "none"
)

// Options of an archive. Agent and Modules are required.
type Options struct {
	// Agent is the program that becomes /init: static, for the machine's
	// architecture.
	Agent []byte
	// Modules of the kernel that will be started with it.
	Modules *Modules
	// Wanted chooses modules by path; nil: the function of that name.
	Wanted func(file string) bool
	// Also are files that are added, by name without a slash at the start.
	Also map[string][]byte
	// Compression is zstd if it is "".
	Compression Compression
}

// Report reports what an archive holds.
type Report struct {
	Release string
	Modules int   // how many
	Drivers int64 // bytes of modules, uncompressed
	Plain   int64 // bytes of the archive, uncompressed
	Size    int64 // bytes that were written
}

// Build writes the archive. The same options give the same bytes.
func Build(w io.Writer, o Options) (Report, error) {
	var r Report
	if o.Modules == nil || len(o.Agent) < 4 || string(o.Agent[:4]) != "\x7fELF" {
		return r, muster.Errorf(muster.EInvalid, "an initramfs needs an agent, which is a program, and the modules of a kernel")
	}
	if o.Wanted == nil {
		o.Wanted = Wanted
	}
	all, err := o.Modules.choose(o.Wanted)
	if err != nil {
		return r, err
	}
	r.Release, r.Modules = o.Modules.Release, len(all)
	entries, err := o.entries(all)
	if err != nil {
		return r, err
	}
	for _, c := range all {
		r.Drivers += int64(len(c.data))
	}
	out := &counter{w: w}
	pack, err := compressor(out, o.Compression)
	if err != nil {
		return r, err
	}
	plain := &counter{w: pack}
	if err := writeArchive(plain, entries); err != nil {
		return r, err
	}
	err = pack.Close()
	r.Plain, r.Size = plain.n, out.n
	return r, err
}

// entries are what the kernel and the agent need to find.
func (o *Options) entries(all map[string]*chosen) ([]entry, error) {
	dir := "lib/modules/" + o.Modules.Release + "/"
	dep, alias, softdep := tables(all)
	builtin, err := o.Modules.text("modules.builtin")
	if err != nil {
		return nil, muster.Errorf(muster.ECorrupt, "the list of built-in drivers cannot be read").Wrap(err)
	}
	out := []entry{
		{name: "init", mode: typeFile | 0o755, data: o.Agent},
		// What the kernel starts when it wants a driver itself.
		{name: "sbin/modprobe", mode: typeLink | 0o777, data: []byte("/init")},
		// The kernel opens the console before the first program; a Go program
		// without its three descriptors opens null.
		{name: "dev/console", mode: typeChar | 0o600, major: 5, minor: 1},
		{name: "dev/null", mode: typeChar | 0o666, major: 1, minor: 3},
		{name: dir + "modules.dep", mode: typeFile | 0o644, data: []byte(dep)},
		{name: dir + "modules.alias", mode: typeFile | 0o644, data: []byte(alias)},
		{name: dir + "modules.softdep", mode: typeFile | 0o644, data: []byte(softdep)},
		{name: dir + "modules.builtin", mode: typeFile | 0o644, data: []byte(builtin)},
	}
	for _, mount := range []string{"proc", "sys", "run"} {
		out = append(out, entry{name: mount, mode: typeDir | 0o755})
	}
	for _, c := range all {
		out = append(out, entry{name: dir + c.file, mode: typeFile | 0o644, data: c.data})
	}
	for name, data := range o.Also {
		if name == "" || strings.HasPrefix(name, "/") || slices.Contains(strings.Split(name, "/"), "..") {
			return nil, muster.Errorf(muster.EInvalid, "%q is not a file name in an archive", name)
		}
		out = append(out, entry{name: name, mode: typeFile | 0o644, data: data})
	}
	return out, nil
}

// compressor returns what compresses into w, always in the same way.
func compressor(w io.Writer, c Compression) (io.WriteCloser, error) {
	switch c {
	case "", Zstd:
		// One thread: more of them cut the input where it suits them.
		return zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithEncoderConcurrency(1),
			zstd.WithWindowSize(8<<20), zstd.WithSingleSegment(false))
	case Gzip:
		return gzip.NewWriterLevel(w, gzip.BestCompression)
	case Plain:
		return nopCloser{w}, nil
	}
	return nil, muster.Errorf(muster.EInvalid, "no compression is called %q", c)
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}
