package daemon

import (
	"os"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/document/documenttest"
)

func TestDocuments(t *testing.T) {
	documenttest.Check(t, siteDoc)
	documenttest.Check(t, copyDoc)
}

// A copy of another version is named and left out; the others are read.
func TestCopyOfAnotherVersion(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(dir+"/"+copiesDir, 0o700); err != nil {
		t.Fatal(err)
	}
	good, err := copyDoc.Encode(&clusterCopy{Cluster: muster.Cluster{ID: "c-good"}})
	if err != nil {
		t.Fatal(err)
	}
	for id, text := range map[muster.ClusterID]string{
		"c-good": string(good), "c-next": `{"document":"cluster-copy/2","content":{"cluster":{"id":"c-next"}}}`, "c-past": `{"format":1,"cluster":{"ID":"c-past"}}`,
	} {
		if err := os.WriteFile(copyPath(dir, id), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	list, bad := readCopies(dir)
	if len(list) != 1 || list[0].Cluster.ID != "c-good" || len(bad) != 2 {
		t.Fatalf("read %+v, not %v", list, bad)
	}
	for i, want := range []string{`"cluster-copy/2"`, "cluster-copy/1"} {
		if !strings.Contains(bad[i].Error(), want) {
			t.Errorf("%v does not say %s", bad[i], want)
		}
	}
}
