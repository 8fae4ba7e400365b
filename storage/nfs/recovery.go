package nfs

import (
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
)

// recoveryName is where ganesha notes its clients. Each is a directory below v4recov/node0 or v4old/node0, with a name such as
// "::ffff:10.90.0.2-(24:Linux NFSv4.1 n01/abc)"; a long name is cut into pieces, each a directory within the one before.
const recoveryName = "recovery"

// maxPiece is how long a piece is at most.
const maxPiece = 255

// restoreClients replaces what ganesha notes of its clients by a copy of what was kept. A client that
// has another address now keeps its locks only where it is noted with that: ganesha compares both.
func restoreClients(from, to string, moved map[netip.Addr]netip.Addr) error {
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() || path == from {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		parts := strings.Split(name, "/")
		if len(parts) <= 2 { // v4recov, node0
			return os.Mkdir(filepath.Join(to, name), 0o700)
		}
		if inside, err := os.ReadDir(path); err != nil || len(inside) > 0 {
			return err // a piece of a name
		}
		client := movedClient(strings.Join(parts[2:], ""), moved)
		at := filepath.Join(to, parts[0], parts[1])
		for len(client) > maxPiece {
			at, client = filepath.Join(at, client[:maxPiece]), client[maxPiece:]
		}
		return os.MkdirAll(filepath.Join(at, client), 0o700)
	})
}

// movedClient is the name of a client with the address that it has now.
func movedClient(name string, moved map[netip.Addr]netip.Addr) string {
	at, rest, ok := strings.Cut(name, "-(")
	was, err := netip.ParseAddr(at)
	if !ok || err != nil {
		return name
	}
	is, ok := moved[was.Unmap()]
	if !ok {
		return name
	}
	if was.Is4In6() {
		return "::ffff:" + is.String() + "-(" + rest
	}
	return is.String() + "-(" + rest
}
