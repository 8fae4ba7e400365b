package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/store/storetest"
	"github.com/muster-hpc/muster/wire"
)

// fill records several of everything, for two projects in turn. It tells the first cluster.
func fill(t *testing.T, s *controltest.Site) (first muster.ClusterID) {
	t.Helper()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) // all at once: only their numbers order them
	err := s.Store.Update(t.Context(), muster.System(), func(tx *store.Tx) error {
		for i := range 5 {
			owner, project := "alice", "bio"
			if i%2 == 1 {
				owner, project = "bob", "chem"
			}
			c := storetest.NewCluster(fmt.Sprintf("c%d", i), owner, project)
			c.Created = at
			if i == 0 {
				first = c.ID
			}
			v := muster.Volume{ID: muster.NewVolumeID(), Name: c.Name, Owner: owner, Project: project, Kind: muster.VolumeData,
				Driver: muster.DriverHostPath, Phase: muster.VolumeReady, Created: at}
			r := muster.Registration{ID: muster.MachineID(fmt.Sprintf("r1-n0%d", i)), State: muster.RegistrationWaiting,
				NICs: []muster.RegisteredNIC{{MAC: fmt.Sprintf("52:54:00:00:00:0%d", i), Use: muster.UseManagement}}, Power: muster.PowerAddress{Kind: muster.PowerWOL}}
			for _, err := range []error{tx.PutCluster(c, "made"), tx.PutVolume(v, ""), tx.PutRegistration(r, "added"),
				tx.PutCertificate(storetest.Signed(t, storetest.NewCertificate(c.ID, "n01"))),
				tx.PutHPL(storetest.NewHPL(first, float64(i+1)*1e10)),
				tx.PutProgram(storetest.NewProgram(c.Name, project), "added"),
				tx.PutExperiment(storetest.NewExperiment(c.Name, project, owner)),
				tx.PutProgramRun(storetest.NewProgramRun(storetest.NewProgram(c.Name, project), first, owner))} {
				if err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return first
}

// Page by page, a list has what it has at once, in the same order, whoever asks.
func TestPagesMakeTheList(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 5, Control: func(c *control.Config) {
		c.SigningKeys = func() []muster.SigningKey {
			at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			return []muster.SigningKey{{ID: "a", From: at}, {ID: "b", From: at.Add(time.Millisecond)}, {ID: "c", From: at.Add(10 * time.Millisecond)}}
		}
	}})
	alice := s.User("alice", "bio")
	for _, u := range []string{"bob", "carol", "dave"} {
		s.User(u, "chem")
	}
	s.User("alice", "bio") // and another token
	first := fill(t, s)
	for path, c := range map[string]struct {
		key  string
		want [2]int // at least, for the administrator and for alice
	}{
		"/v1/clusters":       {"clusters", [2]int{5, 3}},
		"/v1/machines":       {"machines", [2]int{5, 5}},
		"/v1/machines?all=1": {"machines", [2]int{5, 5}},
		"/v1/volumes":        {"volumes", [2]int{5, 3}},
		"/v1/certificates":   {"certificates", [2]int{5, 3}},
		"/v1/clusters/" + string(first) + "/certificates": {"certificates", [2]int{1, 1}},
		"/v1/clusters/" + string(first) + "/hpl":          {"results", [2]int{5, 5}},
		"/v1/programs":                                    {"programs", [2]int{18, 16}},
		"/v1/runs":                                        {"runs", [2]int{5, 3}},
		"/v1/experiments":                                 {"experiments", [2]int{5, 3}},
		"/v1/users":                                       {"users", [2]int{4, 1}},
		"/v1/tokens":                                      {"tokens", [2]int{5, 2}},
		"/v1/images":                                      {"images", [2]int{1, 1}},
		"/v1/registrations":                               {"machines", [2]int{5, 0}},
		"/v1/certificates/keys":                           {"keys", [2]int{3, 3}},
		"/v1/machines/fake-01/history":                    {"events", [2]int{1, 1}},
	} {
		for i, token := range []string{"", alice} {
			whole := walk(t, s, token, path, c.key, 0)
			if len(whole) < c.want[i] || i == 1 && c.want[1] < c.want[0] && len(whole) != c.want[1] {
				t.Errorf("%s for %d has %d", path, i, len(whole))
			}
			for _, size := range []int{1, 2, len(whole), len(whole) + 1} {
				if got := walk(t, s, token, path, c.key, max(1, size)); !slices.Equal(got, whole) {
					t.Errorf("%s for %d by %d:\n%v\nwant\n%v", path, i, size, got, whole)
				}
			}
		}
	}
	// The client shows all of it.
	if list, err := s.Client(alice).Volumes(t.Context(), wire.VolumeQuery{Page: wire.Page{Limit: 2}}); err != nil || len(list) != 2 {
		t.Errorf("%d, %v", len(list), err)
	}
	for _, path := range []string{"/v1/clusters?after=x", "/v1/volumes?after=1.x", "/v1/certificates?after=.", "/v1/machines/fake-01/history?after=x"} {
		if a := ask(t, s, "", "GET", path, "", ""); a.status != http.StatusBadRequest || a.code(t) != muster.EInvalid {
			t.Errorf("%s: %+v", path, a)
		}
	}
}

// walk reads a list page by page. The pages have the asked size, but for the last one.
func walk(t *testing.T, s *controltest.Site, token, path, key string, size int) (all []string) {
	t.Helper()
	for after := ""; ; {
		at, err := url.Parse(path)
		if err != nil {
			t.Fatal(err)
		}
		q := at.Query()
		if size > 0 {
			q.Set("limit", fmt.Sprint(size))
		}
		if after != "" {
			q.Set("after", after)
		}
		at.RawQuery = q.Encode()
		a := ask(t, s, token, "GET", at.String(), "", "")
		var reply map[string]json.RawMessage
		var part []json.RawMessage
		if err := json.Unmarshal([]byte(a.body), &reply); err != nil || a.status != http.StatusOK {
			t.Fatalf("%s: %v: %+v", at, err, a)
		}
		if err := json.Unmarshal(reply[key], &part); err != nil || part == nil {
			t.Fatalf("%s: %v: %s", at, err, a.body)
		}
		for _, p := range part {
			all = append(all, string(p))
		}
		after = ""
		if next := reply["next"]; next != nil {
			if err := json.Unmarshal(next, &after); err != nil || after == "" || len(part) != size {
				t.Fatalf("%s: %d of %d, and next is %s", at, len(part), size, next)
			}
		}
		if after == "" {
			return all
		}
	}
}

// Events are told from one on, and so many.
func TestSomeEvents(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 2})
	fill(t, s)
	count := func(query string) (ids []string) {
		a := ask(t, s, "", "GET", "/v1/events?"+query, "", "")
		for line := range strings.Lines(a.body) {
			if id, ok := strings.CutPrefix(line, "id: "); ok {
				ids = append(ids, strings.TrimSpace(id))
			}
		}
		return ids
	}
	all := count("follow=0")
	if len(all) < 8 {
		t.Fatal(all)
	}
	if got := count("follow=0&limit=3"); !slices.Equal(got, all[:3]) {
		t.Errorf("%v of %v", got, all)
	}
	if got := count("limit=3&after=" + all[2]); !slices.Equal(got, all[3:6]) {
		t.Errorf("%v of %v", got, all)
	}
}

// BenchmarkMachinePage reads the machines of a site of ten thousand: a page, and all of
// them as the client does.
func BenchmarkMachinePage(b *testing.B) {
	s := controltest.Start(b, controltest.Options{Machines: 10_000})
	k := s.Client("")
	for _, size := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprintf("page=%d", size), func(b *testing.B) {
			for b.Loop() {
				list, err := s.Control.Machines(b.Context(), muster.System(), wire.MachineQuery{All: true, Page: wire.Page{Limit: size, After: "fake-50"}})
				if err != nil || len(list.Machines) == 0 {
					b.Fatal(len(list.Machines), err)
				}
			}
		})
	}
	b.Run("client", func(b *testing.B) {
		for b.Loop() {
			list, err := k.Machines(b.Context(), true)
			if err != nil || len(list) != 10_000 {
				b.Fatal(len(list), err)
			}
		}
	})
}
