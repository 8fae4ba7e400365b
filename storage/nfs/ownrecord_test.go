package nfs

import (
	"path/filepath"
	"testing"

	"github.com/muster-hpc/muster"
)

// A port is one cluster's, and comes again when that is gone.
func TestOwnPorts(t *testing.T) {
	t.Parallel()
	r := ownRecord{Servers: map[muster.ClusterID]ownServer{}}
	for i, id := range []muster.ClusterID{"c-1", "c-2", "c-3"} {
		p := r.free(20490, 20492)
		if p != 20490+uint16(i) {
			t.Errorf("%s gets %d", id, p)
		}
		r.Servers[id] = ownServer{Port: p, Held: i == 1}
	}
	if p := r.free(20490, 20492); p != 0 {
		t.Errorf("all are taken, and there is %d", p)
	}
	if p := (ownRecord{Servers: map[muster.ClusterID]ownServer{"c": {Port: 65535}}}).free(65535, 65535); p != 0 {
		t.Errorf("all are taken, and there is %d", p)
	}
	delete(r.Servers, "c-2")
	if p := r.free(20490, 20492); p != 20491 {
		t.Errorf("there is %d", p)
	}
	path := filepath.Join(t.TempDir(), "servers.json")
	if again, err := readOwn(path); err != nil || len(again.Servers) != 0 {
		t.Errorf("nothing is there: %+v, %v", again, err)
	}
	if err := r.write(path); err != nil {
		t.Fatal(err)
	}
	if again, err := readOwn(path); err != nil || len(again.Servers) != 2 || again.Servers["c-3"].Port != 20492 {
		t.Errorf("%+v, %v", again, err)
	}
}

// FuzzOwn: whatever is in the file, no two clusters have a port, and no ID leads out of the directory.
func FuzzOwn(f *testing.F) {
	for _, s := range []string{
		`{"document":"volume-servers/1","content":{"servers":{"c-1":{"port":20490,"held":true,"at":{"n01":"10.90.0.2"}}}}}`,
		`{"document":"volume-servers/1","content":{"servers":{"../x":{"port":1}}}}`,
		`{"document":"volume-servers/1","content":{"servers":{"a":{"port":1},"b":{"port":1}}}}`,
		`{"document":"volume-servers/1","content":{"servers":null}}`, `{}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := parseOwn("servers.json", b)
		if err != nil {
			return
		}
		ports := map[uint16]bool{}
		for id, s := range r.Servers {
			if s.Port == 0 || ports[s.Port] || filepath.Base(string(id)) != string(id) || id == "" || id == "." || id == ".." {
				t.Errorf("%q: %+v", id, s)
			}
			ports[s.Port] = true
		}
	})
}
