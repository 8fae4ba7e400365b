package nodeconf

import (
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"pgregory.net/rapid"
)

// At any time a cluster's nodes have certificates of one number, until a time when they get the next;
// that is long before those of the site's authority end.
func TestCertificatesAreRenewed(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		id := muster.ClusterID(rapid.StringMatching(`c-[a-z2-9]{10}`).Draw(t, "cluster"))
		now := time.Unix(rapid.Int64Range(1_700_000_000, 4_000_000_000).Draw(t, "now"), 0).UTC()
		n, until := certificatesOf(id, now)
		if left := until.Sub(now); left <= 0 || left > renewal || renewal > DoorCertificateLife/5 {
			t.Fatalf("%s are left", left)
		}
		if same, end := certificatesOf(id, until.Add(-time.Second)); same != n || !end.Equal(until) {
			t.Errorf("%d until %s, then %d until %s", n, until, same, end)
		}
		if next, _ := certificatesOf(id, until); next != n+1 {
			t.Errorf("%d comes after %d", next, n)
		}
	})
}
