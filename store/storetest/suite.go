package storetest

import (
	"testing"

	"github.com/muster-hpc/muster/store"
)

// Open opens an empty store for one test and closes it when the test ends.
// A second call within a test with the same dir opens the same store again.
type Open func(t testing.TB, dir string, o store.Options) *store.DB

// Suite runs every test that a back end must pass.
func Suite(t *testing.T, open Open) {
	fresh := func(t testing.TB) (*store.DB, *Clock) {
		clock := NewClock()
		return open(t, t.TempDir(), store.Options{Clock: clock}), clock
	}
	for _, c := range []struct {
		name string
		test func(*testing.T, func(testing.TB) (*store.DB, *Clock))
	}{
		{"Clusters", testClusters},
		{"FindCluster", testFind},
		{"Transitions", testTransitions},
		{"Deleted", testDeleted},
		{"Nodes", testNodes},
		{"Machines", testMachines},
		{"Volumes", testVolumes},
		{"ForeignVolumes", testForeignVolumes},
		{"Certificates", testCertificates},
		{"Superseded", testSuperseded},
		{"ForeignCertificates", testForeignCertificates},
		{"CertificateProperty", testCertificateProperty},
		{"HPL", testHPL},
		{"ForeignHPL", testForeignHPL},
		{"Programs", testPrograms},
		{"ProgramRuns", testProgramRuns},
		{"RunsEndWithTheirCluster", testRunsEndWithTheirCluster},
		{"Experiments", testExperiments},
		{"Registrations", testRegistrations},
		{"Identities", testIdentities},
		{"MachineOnce", testMachineOnce},
		{"MachineHistory", testMachineHistory},
		{"MachineHistoryBounds", testMachineHistoryBounds},
		{"Copies", testCopies},
		{"Users", testUsers},
		{"UIDs", testUIDs},
		{"Tokens", testTokens},
		{"KeyTerms", testKeyTerms},
		{"GatewaySessions", testGatewaySessions},
		{"Secrets", testSecrets},
		{"Joins", testJoins},
		{"Audit", testAudit},
		{"Feed", testFeed},
		{"History", testHistory},
		{"Network", testNetwork},
		{"Queue", testQueue},
		{"Forbidden", testForbidden},
		{"Guests", testDiscovered},
		{"AsSystem", testAsSystem},
		{"Group", testGroup},
		{"Panic", testPanic},
		{"Misuse", testMisuse},
		{"Text", testText},
		{"Property", testProperty},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.test(t, fresh)
		})
	}
	t.Run("Reopen", func(t *testing.T) { t.Parallel(); testReopen(t, open) })
	t.Run("Crash", func(t *testing.T) { t.Parallel(); testCrash(t, open) })
}
