package process

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// List holds every process that bears the mark of a lab, this one not. The caller
// closes them.
func List(lab string) ([]*Process, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var out []*Process
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() || !marked(pid, lab) {
			continue
		}
		p, err := Open(pid)
		if err != nil {
			continue // it has ended
		}
		if marked(pid, lab) { // again: the number may have gone to another meanwhile
			out = append(out, p)
			continue
		}
		p.Close()
	}
	return out, nil
}

func marked(pid int, lab string) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false
	}
	want := []byte(Marked(lab))
	for _, v := range bytes.Split(b, []byte{0}) {
		if bytes.Equal(v, want) {
			return true
		}
	}
	return false
}

// Sweep ends every process of a lab at once, until a look finds none. Returns how
// many it ended.
func Sweep(ctx context.Context, lab string) (int, error) {
	ended := 0
	for range 20 {
		list, err := List(lab)
		if err != nil {
			return ended, err
		}
		if len(list) == 0 {
			return ended, nil
		}
		for _, p := range list {
			_ = p.Kill()
		}
		for _, p := range list {
			if p.ended(ctx, 10*time.Second) {
				ended++
			}
			p.Close()
		}
		if err := ctx.Err(); err != nil {
			return ended, err
		}
	}
	return ended, fmt.Errorf("processes of the lab %s do not end", lab)
}

// Unrecorded ends processes of a lab that were started with just these arguments and are not
// written down: who started them was killed before. Returns how many.
func Unrecorded(ctx context.Context, lab string, args []string) (int, error) {
	list, err := List(lab)
	if err != nil {
		return 0, err
	}
	ended := 0
	for _, p := range list {
		line, err := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/cmdline")
		if err == nil && string(line) == strings.Join(args, "\x00")+"\x00" {
			_ = p.Kill()
			if p.ended(ctx, 10*time.Second) {
				ended++
			}
		}
		p.Close()
	}
	return ended, ctx.Err()
}
