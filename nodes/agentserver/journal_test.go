package agentserver_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/nodes/agentserver"
	"github.com/muster-hpc/muster/wire"
)

func TestJournalSurvives(t *testing.T) {
	t.Parallel()
	b := joined(t)
	big := strings.Repeat("x", 3000)
	for i := range 30 {
		var lines []wire.JournalLine
		for j := range 30 {
			lines = append(lines, wire.JournalLine{Message: fmt.Sprintf("%d.%d %s", i, j, big)})
		}
		if code := b.send("POST", "/v1/report", address, wire.Report{Attempt: 1, State: "ready", Journal: lines}, nil); code != 200 {
			t.Fatal(code)
		}
	}
	var total int64
	files, err := filepath.Glob(filepath.Join(b.dir, "journal", string(cluster), "*"))
	if err != nil || len(files) != 2 {
		t.Fatalf("files %v %v", files, err)
	}
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil || info.Size() > 1<<20 || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", f, info, err)
		}
		total += info.Size()
	}
	// Another server reads what this one kept.
	other, err := agentserver.New(agentserver.Config{Store: b.db, Sign: b.authority.SignNode, JournalDir: filepath.Join(b.dir, "journal"),
		Configure: func(context.Context, muster.ClusterID, string) (wire.NodeConfig, error) {
			return wire.NodeConfig{}, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	lines, err := other.Journal(cluster, "n01", 100)
	if err != nil || len(lines) != 100 || !strings.HasPrefix(lines[99].Message, "29.29 ") {
		t.Fatalf("%d lines, %v", len(lines), err)
	}
	if lines, err := other.Journal(cluster, "../../ca", 100); err != nil || len(lines) != 0 {
		t.Errorf("outside: %v %v", lines, err)
	}
	if err := other.PruneJournals(func(muster.ClusterID) bool { return false }); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(filepath.Join(b.dir, "journal")); len(left) != 0 {
		t.Errorf("left %v", left)
	}
}
