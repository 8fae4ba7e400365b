package nfs

import (
	"net/netip"
	"path/filepath"
	"regexp"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster"
)

// Export is one directory and who may mount it.
type Export struct {
	// Name is what clients mount, without the slash before it: letters, digits, dots,
	// hyphens and underscores, such as v-2345678901-home. One word, because others
	// would see the directories above it.
	Name string `json:"name"`
	// Path of the directory, free of links. Its file system holds nothing that the
	// clients may not have: a file handle reaches all of it.
	Path string `json:"path"`
	// Clients are the only ones that find it. None: nobody does, and the file system
	// stays in use.
	Clients []Client `json:"clients"`
}

// Client is one machine. Its root is root in the export, and may be any user there.
type Client struct {
	Address  netip.Addr `json:"address"`
	ReadOnly bool       `json:"read_only,omitempty"`
}

var (
	nameForm = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$`)
	pathForm = regexp.MustCompile(`^(/[A-Za-z0-9_.+@:~-]+)+$`)
)

// check reports what is wrong with an export, whatever else is exported.
func (e Export) check() error {
	if !nameForm.MatchString(e.Name) {
		return muster.Errorf(muster.EInvalid, "%.80q is not the name of an export", e.Name).Because(muster.ReasonBadName).
			WithHint("letters, digits, dots, hyphens and underscores, at most 100")
	}
	if !pathForm.MatchString(e.Path) || filepath.Clean(e.Path) != e.Path || len(e.Path) > 1000 {
		return muster.Errorf(muster.EInvalid, "%.200q cannot be exported", e.Path).Because(muster.ReasonBadValue).
			WithHint("keep Muster's state at an absolute path of letters, digits and -_.+@:~")
	}
	seen := map[netip.Addr]bool{}
	for _, c := range e.Clients {
		// Ganesha 4.3 does not know clients by addresses of IPv6: nobody would find it.
		if !c.Address.Is4() || c.Address.IsUnspecified() {
			return muster.Errorf(muster.EInvalid, "%q is not the address of a client of %s", c.Address, e.Name).Because(muster.ReasonBadAddress).
				WithHint("machines mount volumes by IPv4")
		}
		if seen[c.Address] {
			return muster.Errorf(muster.EInvalid, "client %s is named twice for %s", c.Address, e.Name).Because(muster.ReasonGivenTwice)
		}
		seen[c.Address] = true
	}
	return nil
}

// sorted is the set in the order of names, each with its clients in theirs.
func sorted(set []Export) []Export {
	out := make([]Export, 0, len(set))
	for _, e := range set {
		e.Clients = slices.SortedFunc(slices.Values(e.Clients), func(a, b Client) int { return a.Address.Compare(b.Address) })
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b Export) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return out
}

// fileSystem is the number of the one that holds a directory; no link is followed.
func fileSystem(path string) (uint64, error) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return 0, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return 0, unix.ENOTDIR
	}
	return st.Dev, nil
}

// apart leaves out exports that a handle could lead out of: those on a file system
// of the host's own, and those on one that others may reach, too. It also leaves out
// what is not there. Each comes with its reason.
func apart(set []Export, own map[uint64]bool) (good []Export, bad []error) {
	type first struct {
		name    string
		clients []Client
	}
	shared := map[uint64]first{}
	for _, e := range set {
		dev, err := fileSystem(e.Path)
		f, seen := shared[dev]
		switch {
		case err != nil:
			err = muster.Errorf(muster.EUnavailable, "%s cannot be exported: %s is not there", e.Name, e.Path).Because(muster.ReasonVolumeGone).
				WithHint("mount it").Wrap(err)
		case own[dev]:
			err = muster.Errorf(muster.EInvalid, "%s cannot be exported: it lies on a file system of the server's own, and a made-up file handle would reach all of that", e.Name).Because(muster.ReasonVolumeUnreachable).
				WithHint("make a volume of driver managed-nfs: it has a file system of its own")
		case seen && !slices.Equal(f.clients, e.Clients):
			err = muster.Errorf(muster.EInvalid, "%s cannot be exported: it shares a file system with %s, which others may mount", e.Name, f.name).Because(muster.ReasonVolumeUnreachable)
		}
		if err != nil {
			bad = append(bad, err)
			continue
		}
		if !seen {
			shared[dev] = first{e.Name, e.Clients}
		}
		good = append(good, e)
	}
	return good, bad
}

// ownFileSystems are those that hold the server's state and its root.
func ownFileSystems(dir string) (map[uint64]bool, error) {
	out := map[uint64]bool{}
	for _, at := range []string{dir, "/"} {
		dev, err := fileSystem(at)
		if err != nil {
			return nil, err
		}
		out[dev] = true
	}
	return out, nil
}
