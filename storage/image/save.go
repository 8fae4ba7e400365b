package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	muster "github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/agent/units"
)

// SaveOptions say whose root file system becomes an image.
type SaveOptions struct {
	Base muster.ImageID // what the node runs
	By   muster.ImageSaved
	// Forget are people: their accounts and homes are not part of the image.
	Forget []string
	// Received is called when the whole tree has been read; it is packed then. May be nil.
	Received func()
}

// TreeChanges is how much a node's root differed from its image.
type TreeChanges struct {
	Written int   // files, directories and links that are other ones, or new
	Removed int   // that are gone
	Bytes   int64 // in what was written
}

// Save makes an image of a node's root file system, which comes as a tar, laid over the
// image that the node runs: what Muster placed there for the node, identity, keys, logs and
// the scheduler's state are the base's. The kernel and its modules are the base's, too.
//
// It returns EInvalid for a tar that is none of a root file system, or too large.
func (s *Store) Save(ctx context.Context, o SaveOptions, tree io.Reader) (m *muster.Image, changes TreeChanges, err error) {
	from, err := s.Show(o.Base)
	if err != nil {
		return nil, changes, err
	}
	if err := s.prepared(from.Architecture); err != nil {
		return nil, changes, err
	}
	if err := s.checkContext(ctx, from, readUnlessKnown); err != nil {
		return nil, changes, err
	}
	work, err := s.newWorkspace("save")
	if err != nil {
		return nil, changes, err
	}
	defer func() { err = errors.Join(err, work.close()) }()
	log, err := os.Create(s.logPath("saved-" + from.Name))
	if err != nil {
		return nil, changes, storeError("write the log of the build", err)
	}
	defer log.Close()
	file, _ := from.File(muster.FileRoot)
	err = withPrivateMounts(func() error {
		root := work.path("root")
		release, err := s.unpackBase(ctx, work, filepath.Join(s.Path(from.ID), file.Name), root, log)
		defer release()
		if err != nil {
			return err
		}
		if changes, err = s.lay(ctx, root, from, o, tree); err != nil {
			return err
		}
		m, err = s.pack(ctx, work, from, o, log)
		return err
	})
	if err != nil {
		return nil, changes, explainBuild("of a node's root", log.Name(), err)
	}
	return m, changes, nil
}

// lay makes the tree at root, which is the base's, the node's.
func (s *Store) lay(ctx context.Context, root string, from *muster.Image, o SaveOptions, tree io.Reader) (TreeChanges, error) {
	in, err := os.OpenRoot(root)
	if err != nil {
		return TreeChanges{}, storeError("read the root file system", err)
	}
	defer func() { _ = in.Close() }()
	keep := units.Placed(from.NamespaceMasks)
	if from.Slurm != "" {
		keep = append(keep, "var/lib/mysql") // of the accounting
	}
	for _, name := range o.Forget {
		if filepath.IsLocal(name) && !strings.ContainsAny(name, `/*?[\`) {
			keep = append(keep, "home/"+name, "var/mail/"+name, "var/spool/cron/crontabs/"+name, "var/lib/systemd/linger/"+name)
		}
	}
	changes, err := layTree(ctx, in, tree, layBounds{Keep: keep, Entries: mostEntries, Bytes: mostTree, Room: s.room})
	if err != nil {
		return changes, err
	}
	if o.Received != nil {
		o.Received()
	}
	if err := forgetAccounts(in, o.Forget); err != nil {
		return changes, err
	}
	if err := tidyFiles(in); err != nil {
		return changes, fmt.Errorf("tidy the root file system: %w", err)
	}
	return changes, nil
}

// forgetAccounts takes people out of the files in which a system keeps its accounts.
func forgetAccounts(in *os.Root, names []string) error {
	for _, file := range []string{"etc/passwd", "etc/group", "etc/shadow", "etc/gshadow", "etc/subuid", "etc/subgid"} {
		data, err := readRegular(in, file)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return badTree("%v", err)
		}
		var b strings.Builder
		for line := range strings.Lines(string(data)) {
			if name, _, _ := strings.Cut(line, ":"); !slices.Contains(names, name) {
				b.WriteString(line)
			}
		}
		if b.Len() != len(data) {
			if err := rewriteRegular(in, file, []byte(b.String())); err != nil {
				return storeError("forget accounts", err)
			}
		}
	}
	return nil
}

// pack makes an image of the tree at root.
func (s *Store) pack(ctx context.Context, work *workspace, from *muster.Image, o SaveOptions, log io.Writer) (*muster.Image, error) {
	root, out := work.path("root"), work.path("out")
	m := *from
	m.Base, m.Added, m.Files, m.Saved = "", nil, nil, &o.By
	m.Saved.Base = from.ID
	m.Summary = fmt.Sprintf("root of %s of cluster %s", o.By.Node, o.By.Cluster)
	if err := inspect(root, &m); err != nil {
		return nil, badTree("%v", err)
	}
	if m.Slurm != "" {
		if m.Slurm = upstream(versionOf(m.Packages, "slurmd")); m.Slurm == "" {
			return nil, badTree("its scheduler was removed")
		}
	}
	if err := os.Mkdir(out, 0o700); err != nil {
		return nil, storeError("pack the image", err)
	}
	for _, f := range from.Files {
		if f.Role == muster.FileRoot {
			continue
		}
		if err := placeFile(filepath.Join(s.Path(from.ID), f.Name), filepath.Join(out, f.Name)); err != nil {
			return nil, storeError("place the kernel", err)
		}
	}
	if err := s.squash(ctx, root, filepath.Join(out, rootFile), 0, log); err != nil {
		return nil, err
	}
	files, err := digests(ctx, out)
	if err != nil {
		return nil, err
	}
	m.Files, m.Created = files, s.clock.Now()
	m.Saved.At = m.Created.UTC().Truncate(time.Second)
	m.ID = savedID(&m)
	return s.publish(out, &m)
}

func placeFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // only read
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// badTree refuses what a node sent.
func badTree(format string, args ...any) error {
	return muster.Errorf(muster.EInvalid, "the node's root file system cannot be an image: "+format, args...).Because(muster.ReasonBuildFailed).
		WithHint("look at the node's root: it must be a whole system, with its package list")
}
