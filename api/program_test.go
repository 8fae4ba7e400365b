package api_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/api/client"
	"github.com/muster-hpc/muster/control"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/measure"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// Members of a project run its programs and see the runs; whoever added a program and managers
// remove it; who ran one reports its end, and nobody else.
func TestWhoMayDoWhatWithPrograms(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 8, Build: true})
	root := s.Client("")
	people := map[string]*client.Client{
		"root": root, "owner": s.Client(s.User("alice", "aero")), "member": s.Client(s.User("bob", "aero")),
		"manager": s.Client(s.User("carol", "aero")), "stranger": s.Client(s.User("dave", "sky")),
	}
	if _, err := root.SetProjectMember(t.Context(), "aero", wire.ProjectMember{User: "carol", Role: "manager"}); err != nil {
		t.Fatal(err)
	}
	created, err := people["owner"].CreateCluster(t.Context(), client.Create{Format: "yaml", Body: []byte("name: cfd\nnodes: 2\nhead: shared\nusers: [alice, bob]")})
	if err != nil {
		t.Fatal(err)
	}
	waitReady(t, people["owner"])
	add := func() {
		t.Helper()
		if _, err := people["owner"].AddProgram(t.Context(), wire.ProgramRequest{Name: "md", Image: "hpc", Run: "./md", Check: "ok"}); err != nil {
			t.Fatal(err)
		}
	}
	add()
	_, err = people["stranger"].AddProgram(t.Context(), wire.ProgramRequest{Name: "md", Project: "aero", Image: "hpc", Run: "./md"})
	if muster.ReasonOf(err) != muster.ReasonUnknownProject {
		t.Errorf("a stranger added one: %v", err)
	}
	for role, want := range map[string]int{"root": 1, "owner": 1, "member": 1, "manager": 1, "stranger": 0} {
		list, err := people[role].Programs(t.Context())
		own := 0
		for _, p := range list.Programs {
			if !p.Builtin {
				own++
			}
		}
		if err != nil || own != want || len(list.Programs) != 13+want {
			t.Errorf("%s sees %d of %d, %v", role, own, len(list.Programs), err)
		}
	}
	for role, want := range map[string]muster.Code{"member": "", "manager": muster.EForbidden, "stranger": muster.ENotFound} {
		if _, err := people[role].StartRun(t.Context(), string(created.ID), wire.RunRequest{Program: "md"}); muster.CodeOf(err) != want {
			t.Errorf("%s runs it: %v, want %q", role, err, want)
		}
	}
	job, err := people["member"].StartRun(t.Context(), "cfd", wire.RunRequest{Program: "aero/md", Timeout: "1m"})
	if err != nil || job.Run.By != "bob" || job.Submit == "" {
		t.Fatalf("%+v, %v", job, err)
	}
	id := job.Run.ID
	looked := wire.RunReport{Looked: []byte("state ended\nphase run\nrun 1.5 3.5\nstatus 0\nnodes n01 n02 n99\noutput\nok\n")}
	for role, want := range map[string]muster.Code{"owner": muster.EForbidden, "manager": muster.EForbidden, "stranger": muster.ENotFound} {
		if _, err := people[role].ReportRun(t.Context(), id, looked); muster.CodeOf(err) != want {
			t.Errorf("%s reports: %v, want %q", role, err, want)
		}
	}
	if p, err := people["member"].ReportRun(t.Context(), id, wire.RunReport{Looked: []byte("state queue\nphase \nqueue PENDING|0:00||Resources\n")}); err != nil || p.Run.State != muster.ProgramRunOpen || p.Text == "" {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := people["member"].ReportRun(t.Context(), id, wire.RunReport{Looked: []byte("state up\n")}); muster.CodeOf(err) != muster.EInvalid {
		t.Errorf("rubbish is taken: %v", err)
	}
	p, err := people["member"].ReportRun(t.Context(), id, looked)
	if r := p.Run; err != nil || r.State != muster.ProgramRunPassed || r.Wall != 2 || len(r.Nodes) != 2 || len(r.Machines) != 2 || r.Conditions.Image == "" || r.Figure.Source != muster.FigureOfWall {
		t.Errorf("%+v, %v", p, err)
	}
	looked.Looked = []byte("state gone\n")
	if p, err = people["member"].ReportRun(t.Context(), id, looked); err != nil || p.Run.State != muster.ProgramRunPassed {
		t.Errorf("the end of a run changed: %+v, %v", p, err)
	}
	for role, want := range map[string]bool{"root": true, "owner": true, "member": true, "manager": true, "stranger": false} {
		_, err := people[role].ProgramRun(t.Context(), string(id))
		list, err2 := people[role].ProgramRuns(t.Context(), wire.RunQuery{Program: "md"})
		if (err == nil) != want || err2 != nil || (len(list.Runs) == 2) != want {
			t.Errorf("%s sees %d: %v, %v", role, len(list.Runs), err, err2)
		}
	}
	for _, role := range []string{"owner", "manager", "root"} {
		for other, want := range map[string]muster.Code{"member": muster.EForbidden, "stranger": muster.ENotFound} {
			if err := people[other].RemoveProgram(t.Context(), "aero", "md"); muster.CodeOf(err) != want {
				t.Errorf("%s removes it: %v, want %q", other, err, want)
			}
		}
		if err := people[role].RemoveProgram(t.Context(), "aero", "md"); err != nil {
			t.Errorf("%s cannot remove it: %v", role, err)
		}
		add()
	}
}

// A program that does not fit a cluster is refused with everything that is wrong.
func TestRunsAreRefused(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 4, Build: true})
	k := s.Client(s.User("alice", "aero"))
	if _, err := k.CreateCluster(t.Context(), client.Create{Format: "yaml", Body: []byte("name: cfd\nnodes: 2\nhead: shared")}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Client("").CreateVolume(t.Context(), wire.VolumeRequest{Name: "cases", Project: "aero"}); err != nil {
		t.Fatal(err)
	}
	waitReady(t, k)
	err := s.Store.Update(t.Context(), muster.System(), func(tx *store.Tx) error {
		c, err := tx.FindCluster("cfd")
		if err != nil {
			return err
		}
		c.Expires = time.Now().Add(time.Hour)
		return tx.PutCluster(c, "")
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []wire.ProgramRequest{
		{Name: "other", Image: "raw", Run: "x"}, {Name: "reads", Image: "hpc", Run: "cat {input}", Inputs: []string{"cases"}},
	} {
		if _, err := k.AddProgram(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		r    wire.RunRequest
		want muster.Reason
	}{
		"image":    {wire.RunRequest{Program: "other"}, muster.ReasonImageLacks},
		"input":    {wire.RunRequest{Program: "reads"}, muster.ReasonVolumeUnfit},
		"timeout":  {wire.RunRequest{Program: "ep", Timeout: "8d"}, muster.ReasonOutOfRange},
		"walltime": {wire.RunRequest{Program: "ep", Timeout: "2h"}, muster.ReasonOutOfRange},
		"class":    {wire.RunRequest{Program: "ep", Class: "X"}, muster.ReasonBadValue},
		"ranks":    {wire.RunRequest{Program: "ep", Ranks: 9}, muster.ReasonOutOfRange},
		"several":  {wire.RunRequest{Program: "ep", Ranks: 9, Class: "X"}, muster.ReasonHasProblems},
		"none":     {wire.RunRequest{Program: "epp"}, muster.ReasonNoSuchObject},
	} {
		if _, err := k.StartRun(t.Context(), "cfd", c.r); muster.ReasonOf(err) != c.want {
			t.Errorf("%s: %v (%s), want %s", name, err, muster.ReasonOf(err), c.want)
		}
	}
}

// While a program runs its nodes are sampled, and the seconds in which it ran are kept with the run.
func TestRunsHaveTheirSeconds(t *testing.T) {
	t.Parallel()
	var use measure.RunUse
	var mu sync.Mutex
	spoke := map[string]int{}
	s := controltest.Start(t, controltest.Options{Machines: 4, Build: true, Control: func(c *control.Config) {
		c.RunUse = &use
		c.Speak = func(_ muster.ClusterID, node string) {
			mu.Lock()
			defer mu.Unlock()
			spoke[node]++
		}
	}})
	k := s.Client(s.User("alice", "aero"))
	created, err := k.CreateCluster(t.Context(), client.Create{Format: "yaml", Body: []byte("name: cfd\nnodes: 3\nhead: shared")})
	if err != nil {
		t.Fatal(err)
	}
	waitReady(t, k)
	job, err := k.StartRun(t.Context(), "cfd", wire.RunRequest{Program: "ep", Ranks: 8})
	if err != nil {
		t.Fatal(err)
	}
	if !use.WantSeconds(created.ID, time.Now()) {
		t.Fatal("the nodes are not asked")
	}
	report := func(text string) muster.ProgramRun {
		t.Helper()
		p, err := k.ReportRun(t.Context(), job.Run.ID, wire.RunReport{Looked: []byte(text)})
		if err != nil {
			t.Fatal(err)
		}
		return p.Run
	}
	// n01 and n02 ran from the second to the sixth second; n03 and n99 are of no run.
	ended := time.Now().Truncate(time.Second)
	take := func(at time.Time, cores ...float64) {
		for _, node := range []string{"n01", "n02", "n03"} {
			zeros := make([]float64, len(cores))
			use.Take(created.ID, node, at, wire.UsageSeconds{User: cores, System: zeros, Wait: zeros})
		}
	}
	take(ended.Add(-4*time.Second), 0, 0, 1)
	report("state queue\nphase build\nqueue RUNNING|0:01|n[01-02]|None\n")
	if use.Claimed(created.ID, job.Run.ID) {
		t.Error("it has not begun, and is somewhere")
	}
	report("state queue\nphase run\nqueue RUNNING|0:01|n[01-02,99]|None\n")
	if !use.Claimed(created.ID, job.Run.ID) {
		t.Error("nobody noted where it is")
	}
	take(ended.Add(2*time.Second), 2, 3, 4, 4, 0, 0)
	run := report(fmt.Sprintf("state ended\nphase run\nrun %d %d\nstatus 0\nnodes n01 n02 n99\noutput\n", ended.Add(-4*time.Second).Unix(), ended.Unix()))
	if u := run.UseSeries; len(u) != 2 || u[0].Node != "n01" || u[1].Node != "n02" || !slices.Equal(u[1].User, []float64{2, 3, 4, 4}) || !u[0].Start.Equal(ended.Add(-4*time.Second)) {
		t.Errorf("%+v", run.UseSeries)
	}
	if use.WantSeconds(created.ID, time.Now()) {
		t.Error("its nodes are sampled after its end")
	}
	mu.Lock()
	if spoke["n01"] != 2 || spoke["n03"] != 1 || spoke["n99"] != 0 { // to begin, and to say the last
		t.Errorf("%v", spoke)
	}
	mu.Unlock()
	list, err := k.ProgramRuns(t.Context(), wire.RunQuery{})
	if err != nil || len(list.Runs) != 1 || list.Runs[0].UseSeries != nil {
		t.Errorf("%+v, %v", list, err)
	}
	if kept, err := k.ProgramRun(t.Context(), string(job.Run.ID)); err != nil || len(kept.UseSeries) != 2 {
		t.Errorf("%+v, %v", kept, err)
	}
	// One that is refused is not sampled.
	if job, err = k.StartRun(t.Context(), "cfd", wire.RunRequest{Program: "ep"}); err != nil {
		t.Fatal(err)
	}
	if _, err := k.ReportRun(t.Context(), job.Run.ID, wire.RunReport{Refused: "no"}); err != nil || use.WantSeconds(created.ID, time.Now()) {
		t.Errorf("it never ran: %v", err)
	}
}

func waitReady(t *testing.T, k *client.Client) {
	t.Helper()
	err := k.Events(t.Context(), client.EventOptions{Cluster: "cfd", Follow: true}, func(e wire.Event) error {
		if e.To == string(muster.ClusterReady) {
			return client.ErrStop
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
