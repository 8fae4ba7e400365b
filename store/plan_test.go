package store

import (
	"context"
	"crypto/ed25519"
	"database/sql"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/certificate"
)

// TestPlans runs everything once and asks SQLite how it ran each statement:
// none may walk a whole table, except where the whole table is the answer.
func TestPlans(t *testing.T) {
	t.Parallel()
	db, err := Open(context.Background(), filepath.Join(t.TempDir(), "muster.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	id := muster.ClusterID("c-1")
	for _, who := range []muster.Actor{muster.System(), {Name: "alice", Projects: []string{"sea", "lake"}}} {
		err = db.Update(context.Background(), who, func(tx *Tx) error {
			sys := tx.AsSystem()
			c := muster.Cluster{ID: id, Name: "a", Owner: "alice", Project: "sea", Phase: muster.ClusterBuilding, Image: "i"}
			for _, err := range []error{
				sys.PutUser(muster.User{Name: "alice", UID: 20000, Projects: []string{"sea"}}, ""),
				sys.PutMachine(muster.Machine{ID: "m1", Provider: "fake", Phase: muster.MachineNew}, "x"),
				tx.PutCluster(c, "x"),
				tx.PutNode(muster.Node{Cluster: id, Name: "n01", Phase: muster.NodeAssigned}, "x"),
				sys.PutSecret(id, "s", nil),
				sys.PutJoin(Join{Machine: "m1", Cluster: id}),
				sys.PutToken(Token{ID: "t-" + who.Name, User: "alice", Hash: [32]byte{byte(len(who.Name))}}),
				sys.PutClean(muster.CleanRecord{Machine: "m1"}),
				sys.PutMachineEvent(muster.MachineEvent{Machine: "m1", Kind: EventNote}),
				sys.forgetEvents("m1", (keptEvents/8+1)*8),
				sys.PutDuration("boot", "a", "b", time.Second),
			} {
				if err != nil {
					return err
				}
			}
			_, _ = tx.FindCluster("a")
			session := muster.GatewaySession{ID: muster.NewGatewaySessionID(), User: "alice", Fingerprint: "f", Began: time.Unix(1, 0)}
			if err := sys.BeginGatewaySession(session); err != nil {
				return err
			}
			_ = sys.PutKeyTerms("alice", muster.SSHKey{Fingerprint: "f"})
			_ = sys.DropKeyTerms("alice", "g")
			_, _ = tx.KeyTerms("alice")
			_, _ = tx.KeyTermsOf("alice", "f")
			_ = sys.GatewayBytes(session.ID, 1, 1)
			_ = sys.EndGatewaySession(session)
			_, _ = tx.GatewaySession(session.ID)
			_, _ = tx.GatewayCursor(session.ID)
			_, _ = tx.GatewaySessions(GatewayFilter{Limit: 3})
			_, _ = tx.GatewaySessions(GatewayFilter{Open: true, After: "1", Limit: 3})
			_, _ = tx.GatewaySessions(GatewayFilter{User: "alice", Cluster: id, Limit: 3})
			v := muster.Volume{ID: muster.NewVolumeID(), Name: "v-" + who.Name, Owner: "alice", Project: "sea", Kind: "data", Driver: "nfs", Phase: "ready"}
			if err := sys.PutVolume(v, "x"); err != nil {
				return err
			}
			_, _ = tx.Volume(v.ID)
			_, _ = tx.FindVolume(v.Name)
			_, _ = tx.Volumes(VolumeFilter{Cluster: id, Phases: []muster.VolumePhase{"ready"}})
			_, _ = tx.Volumes(VolumeFilter{Phases: []muster.VolumePhase{"retained", "deleting"}})
			_, _ = tx.Volumes(VolumeFilter{Living: true, Kind: "data"})
			_, _ = tx.Certificate("pc-2222222222")
			_, _ = tx.Certificates(CertificateFilter{Limit: 3})
			_, _ = tx.Certificates(CertificateFilter{Cluster: id, Node: "n01", Present: true})
			_, _ = tx.Certificates(CertificateFilter{Machine: "m1"})
			_, _ = tx.Certificates(CertificateFilter{Class: "epyc", Kind: muster.CertifiesNode})
			_ = sys.PutCertificate(planCertificate(t, id))
			_ = sys.PutHPL(planHPL(id))
			_, _ = tx.HPL("hr-2222222222")
			_, _ = tx.HPLResults(HPLFilter{Limit: 3})
			_, _ = tx.HPLResults(HPLFilter{Cluster: id})
			_, _ = tx.HPLResults(HPLFilter{Cluster: id, Fastest: true, Limit: 1})
			_, _ = tx.HPLResults(HPLFilter{Class: "epyc", Fastest: true, Limit: 1})
			_, _ = tx.HPLResults(HPLFilter{Class: "epyc"})
			_, _ = tx.Clusters(ClusterFilter{Living: true, Limit: 3})
			_, _ = tx.Clusters(ClusterFilter{Phases: []muster.ClusterPhase{"queued"}})
			_, _ = tx.Clusters(ClusterFilter{Living: true, After: "1.1", Limit: 3})
			_, _ = tx.Clusters(ClusterFilter{Project: "sea", After: "1.1", Limit: 3})
			_, _ = tx.Machines(MachineFilter{After: "m1", Limit: 3})
			_, _ = tx.Volumes(VolumeFilter{Living: true, After: "1.1", Limit: 3})
			_, _ = tx.Certificates(CertificateFilter{After: "1.1", Limit: 3})
			_, _ = tx.HPLResults(HPLFilter{Cluster: id, After: "1.1", Limit: 3})
			_, _ = tx.Registrations(RegistrationFilter{After: "m1", Limit: 3})
			_, _ = tx.UsersAfter("alice", 3)
			_, _ = tx.ClusterCursor(id)
			_, _ = tx.VolumeCursor("v-1")
			_, _ = tx.CertificateCursor("pc-1")
			_, _ = tx.HPLCursor("hr-1")
			run := muster.ProgramRun{ID: muster.NewProgramRunID(), Program: "md", Project: "sea", By: who.Name, Cluster: id, State: muster.ProgramRunOpen}
			if err := tx.PutProgramRun(run); err != nil {
				return err
			}
			_ = tx.PutProgramRun(run)
			_, _ = tx.ProgramRuns(ProgramRunFilter{Limit: 3})
			_, _ = tx.ProgramRuns(ProgramRunFilter{Project: "sea", Program: "md", After: "1.1", Limit: 3})
			_, _ = tx.ProgramRuns(ProgramRunFilter{Program: "md", Limit: 3})
			_, _ = tx.ProgramRuns(ProgramRunFilter{Cluster: id, Limit: 3})
			_, _ = tx.ProgramRunCursor(run.ID)
			e := muster.Experiment{ID: muster.NewExperimentID(), Name: "x" + muster.RandomID(4), Project: "sea", By: who.Name, State: muster.ExperimentOpen}
			if err := tx.PutExperiment(e); err != nil {
				return err
			}
			_ = tx.PutExperiment(e)
			_ = tx.PutExperimentLaunch(muster.ExperimentLaunch{Experiment: e.ID})
			_, _ = tx.ExperimentLaunches(e.ID, -1, 3)
			_, _ = tx.Experiments(ExperimentFilter{Limit: 3})
			_, _ = tx.Experiments(ExperimentFilter{Project: "sea", Name: "x", After: "1.1", Limit: 3})
			_, _ = tx.ExperimentCursor(e.ID)
			_, _ = tx.Nodes(id)
			_, _ = tx.NodesOf(id)
			_, _ = tx.Machines(MachineFilter{Cluster: id})
			_, _ = tx.Machines(MachineFilter{Phases: []muster.MachinePhase{"free"}})
			_, _ = tx.User("alice")
			if !who.Admin {
				_, _ = tx.Users()
			}
			_, _ = tx.Tokens("alice")
			_, _ = sys.tokens(`hash = ?`, []byte{1})
			_, _ = sys.Secret(id, "s")
			_, _ = sys.UseJoin([32]byte{}, time.Now())
			_, _ = tx.Audits(AuditFilter{After: 1, Cluster: id})
			_, _ = tx.Audits(AuditFilter{After: 1, Limit: 10})
			_, _ = tx.Audits(AuditFilter{Kind: muster.AuditUser})
			_, _ = tx.Durations("boot", "a", "b", 3)
			_, _, _ = tx.MachineEvents("m1", 0, 3)
			_, _ = tx.LastMachine(id, "n01")
			_, _ = tx.LostNodes(3)
			_, _ = tx.QueuePosition(id)
			_, _ = tx.ImageUsers("i")
			_, _, _ = tx.FreeSubnet()
			_, _ = tx.NextUID()
			return sys.DeleteToken("t-" + who.Name)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	var queries []string
	for q := range db.writer.stmts {
		queries = append(queries, q)
	}
	if len(queries) < 40 {
		t.Errorf("only %d statements were run", len(queries))
	}
	for _, q := range queries {
		if verb, _, _ := strings.Cut(q, " "); !slices.Contains([]string{"SELECT", "UPDATE", "DELETE"}, verb) || strings.Contains(q, "max(rev)") {
			continue
		}
		args := make([]any, strings.Count(q, "?"))
		for i := range args {
			args[i] = "1"
		}
		rows, err := db.writer.c.QueryContext(context.Background(), "EXPLAIN QUERY PLAN "+q, args...)
		if err != nil {
			t.Errorf("%s: %v", q, err)
			continue
		}
		for _, detail := range details(t, rows) {
			// A scan of a partial index reads only what is asked for.
			if strings.HasPrefix(detail, "SCAN") && !strings.Contains(detail, "USING") && !strings.Contains(detail, "CONSTANT ROW") && !strings.HasPrefix(detail, "SCAN me") {
				t.Errorf("%s\n  %s", q, detail)
			}
			if strings.HasPrefix(detail, "SCAN") {
				t.Logf("%s\n  %s", q, detail)
			}
		}
	}
}

func planCertificate(t *testing.T, id muster.ClusterID) certificate.Signed {
	now := time.Now().UTC().Truncate(time.Second)
	e, err := certificate.Sign(muster.Certificate{
		Version: 1, ID: muster.NewCertificateID(), Kind: muster.CertifiesNode, Cluster: id, Node: "n01", Machine: "m1", Image: muster.ImageID("sha256:" + strings.Repeat("0", 64)),
		Made: now, Expires: now.Add(time.Hour), Level: muster.ValidateQuick, Supersedes: []muster.CertificateID{"pc-2222222222"}, Certified: true, Verdict: muster.GradePass,
	}, ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	if err != nil {
		t.Fatal(err)
	}
	s, err := certificate.Read(e)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func planHPL(id muster.ClusterID) muster.HPLResult {
	run := muster.HPLRun{HPLSetting: muster.HPLSetting{N: 192, NB: 192, P: 1, Q: 1, PerNode: 1, Threads: 1}, Part: "figure", Rate: 1e9}
	return muster.HPLResult{
		Version: 1, ID: muster.NewHPLID(), Cluster: id, Nodes: []string{"n01"}, Cores: 1, Made: time.Now(), Setting: run.HPLSetting, PerCore: 1e9,
		Rate: muster.Metric{Name: "hpl", Unit: "flop/s", Launches: 1, Median: 1e9, Min: 1e9, Max: 1e9, Verdict: muster.GradeUnknown}, Best: run, Runs: []muster.HPLRun{run},
	}
}

func details(t *testing.T, rows *sql.Rows) (out []string) {
	defer rows.Close()
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			t.Fatal(err)
		}
		out = append(out, detail)
	}
	return out
}
