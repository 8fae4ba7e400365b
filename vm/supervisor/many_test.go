package supervisor_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/muster-hpc/muster/vm/supervisor"
)

// TestMany starts MUSTER_SUPERVISORS machines whose QEMU is stopped before its first instruction, finds them again as a server that
// is started does, and ends them: make bench-supervisors. MUSTER_PROGRAM is the program that their supervisors are; else it is this test.
func TestMany(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv("MUSTER_SUPERVISORS"))
	if err != nil || n < 1 {
		t.Skip("takes minutes: make bench-supervisors")
	}
	kind := machines(t)
	dir := t.TempDir()
	specs := make([]supervisor.Spec, n)
	for i := range specs {
		s, err := spec(filepath.Join(dir, fmt.Sprintf("m%03d", i), "vm"), kind, floods)
		if err != nil {
			t.Fatal(err)
		}
		s.ID += i
		s.Machine.Incoming, s.Task = true, nil
		if p := os.Getenv("MUSTER_PROGRAM"); p != "" {
			s.Command = []string{p}
		}
		specs[i] = s
	}
	t.Cleanup(func() {
		for _, s := range specs {
			if err := supervisor.End(context.Background(), s.Dir); err != nil {
				t.Error(err)
			}
		}
	})
	all := func(do func(supervisor.Spec) error) time.Duration {
		began := time.Now()
		var jobs sync.WaitGroup
		slots := make(chan struct{}, 8)
		for _, s := range specs {
			jobs.Go(func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				if err := do(s); err != nil {
					t.Error(err)
				}
			})
		}
		jobs.Wait()
		return time.Since(began)
	}
	took := all(func(s supervisor.Spec) error {
		k, err := supervisor.Start(t.Context(), s)
		if err == nil {
			k.Close()
		}
		return err
	})
	if t.Failed() {
		t.FailNow()
	}
	var own, rss, qemus []int64
	adopted := all(func(s supervisor.Spec) error {
		k, err := supervisor.Find(s.Dir)
		if err != nil {
			return err
		}
		defer k.Close()
		_, err = k.Status(t.Context())
		return err
	})
	for _, s := range specs {
		k, err := supervisor.Find(s.Dir)
		if err != nil {
			t.Fatal(err)
		}
		st, err := k.Status(t.Context())
		k.Close()
		if err != nil {
			t.Fatal(err)
		}
		own = append(own, kilobytes(t, st.Supervisor, "Pss"))
		rss = append(rss, kilobytes(t, st.Supervisor, "Rss"))
		qemus = append(qemus, kilobytes(t, st.QEMU, "Pss"))
	}
	ended := all(func(s supervisor.Spec) error { return supervisor.End(t.Context(), s.Dir) })
	mid := func(list []int64) float64 {
		slices.Sort(list)
		return float64(list[len(list)/2]) / 1024
	}
	t.Logf("%d supervisors with their QEMUs, stopped before the first instruction:", n)
	t.Logf("started in %.1f s: %.1f a second", took.Seconds(), float64(n)/took.Seconds())
	t.Logf("found again in %.2f s: %.0f a second", adopted.Seconds(), float64(n)/adopted.Seconds())
	t.Logf("ended in %.1f s: %.1f a second", ended.Seconds(), float64(n)/ended.Seconds())
	t.Logf("memory of each: supervisor %.1f MiB of its own share (Pss; %.1f MiB resident), QEMU %.1f MiB", mid(own), mid(rss), mid(qemus))
	if most := own[len(own)-1]; most > 20<<10 { // what is resident is mostly the program, which all of them share
		t.Errorf("a supervisor has %d kB of its own, more than 20 MiB", most)
	}
}

// kilobytes is what a process has of memory.
func kilobytes(t *testing.T, pid int, field string) int64 {
	t.Helper()
	f, err := os.Open(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for in := bufio.NewScanner(f); in.Scan(); {
		if rest, ok := strings.CutPrefix(in.Text(), field+":"); ok {
			n, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("process %d has no %s", pid, field)
	return 0
}
