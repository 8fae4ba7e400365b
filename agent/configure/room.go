package configure

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// What must be free where jobs start: their scripts, logs and sockets need a little. Of a
// small file system a part will do.
const (
	roomBytes  = 8 << 20
	roomInodes = 64
	roomPart   = 64
)

// room remembers where too little was left: that is over when twice as much is free, or a
// node whose disk is filled again and again would come and go. The zero value is ready.
// Its methods are safe for concurrent use: a dead file system may answer late.
type room struct {
	mu  sync.Mutex
	low map[string]bool
}

// lacks notes how full the file system of a directory is, and reports whether too little
// is left.
func (r *room) lacks(dir string, st *unix.Statfs_t) bool {
	if st.Blocks == 0 { // has no size of its own
		return false
	}
	block := uint64(max(st.Bsize, 1))
	bytes := max(min(roomBytes, st.Blocks*block/roomPart), 1)
	inodes := max(min(roomInodes, st.Files/roomPart), 1)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.low[dir] {
		bytes, inodes = 2*bytes, 2*inodes
	}
	low := st.Bavail*block < bytes || st.Files > 0 && st.Ffree < inodes
	if r.low == nil {
		r.low = map[string]bool{}
	}
	r.low[dir] = low
	return low
}

// diskHasRoom looks whether jobs can start: they need a little room in each of these.
func (c *Configurer) diskHasRoom(context.Context) error {
	var full []string
	for _, dir := range []string{"/", "/run", "/tmp", "/var/tmp", "/var/spool/slurmd", "/dev/shm"} {
		var st unix.Statfs_t
		if c.statfs(c.files.at(dir), &st) == nil && c.room.lacks(dir, &st) {
			full = append(full, dir)
		}
	}
	if len(full) > 0 {
		return fmt.Errorf("hardly any space is left on %s", strings.Join(full, ", "))
	}
	return nil
}
