package spec

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"
)

// shown is a spec as `muster show -o json` and -o yaml print it.
func shown(t interface{ Fatal(...any) }, s muster.Spec) map[Format][]byte {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	var node yaml.Node
	if err := yaml.Unmarshal(text, &node); err != nil {
		t.Fatal(err)
	}
	var block func(n *yaml.Node)
	block = func(n *yaml.Node) {
		n.Style = 0
		for _, c := range n.Content {
			block(c)
		}
	}
	block(&node)
	document, err := yaml.Marshal(&node)
	if err != nil {
		t.Fatal(err)
	}
	return map[Format][]byte{JSON: text, YAML: document}
}

// again reads a spec that was shown, at a time.
func again(t interface {
	Fatal(...any)
	Fatalf(string, ...any)
}, s muster.Spec, now time.Time) {
	for format, text := range shown(t, s) {
		_, got, err := Read(text, format, Defaults{Now: now, Retain: time.Hour, Egress: muster.EgressNAT, Users: []string{"somebody"}})
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		got.Allowed = s.Allowed // looked up for each request
		if !reflect.DeepEqual(got, s) {
			t.Fatalf("%s:\ngot  %+v\nwant %+v", text, got, s)
		}
	}
}

// The spec of a cluster, as it is shown, is a request for another like it: whatever the site's
// defaults are.
func TestShownSpecIsARequest(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	files, err := filepath.Glob("testdata/*")
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for _, file := range files {
		if strings.Contains(file, ".bad.") || strings.Contains(file, ".golden.") {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, s, err := Read(data, FormatOf("", file, data), Defaults{Project: "p", Users: []string{"carol"}, Now: now})
		if err != nil {
			continue // it belongs to another test
		}
		read++
		again(t, s, now)
	}
	if read < 6 {
		t.Errorf("%d files were read", read)
	}
	rapid.Check(t, func(t *rapid.T) {
		r := anyRequest().Draw(t, "request")
		r.Start = rapid.SampledFrom([]wire.StartWish{{}, {At: "now"}, {At: "earliest"}, {At: "+2h"}, {After: "+2h"}, {Before: "+90d"}, {After: "+1d", Before: "+90d"}}).Draw(t, "start")
		if rapid.Bool().Draw(t, "accelerated") {
			r.Machine.Accelerators = rapid.SampledFrom([]string{"=0", ">=2", ">0", "<8"}).Draw(t, "accelerators")
		}
		s, problems := Validate(r, Defaults{Project: "p", Users: []string{"carol"}, Now: now})
		if len(problems) > 0 {
			t.Skip(problems)
		}
		if rapid.Bool().Draw(t, "rights") {
			s.Allowed = &muster.Allowed{Classes: []string{"fat-*"}}
		}
		again(t, s, now)
	})
}

// A template that is made of a cluster asks for the same machines.
func TestRequestOfASpec(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := anyRequest().Draw(t, "request")
		r.Home, r.HomeQuota, r.Retain = "", "", "" // of the one cluster
		s, problems := Validate(r, Defaults{})
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		got, problems := Validate(RequestOf(s), Defaults{})
		if len(problems) > 0 || !reflect.DeepEqual(got, s) {
			t.Fatalf("%v\ngot  %+v\nwant %+v", problems, got, s)
		}
	})
}

// What is wrong with a field of a spec is told where it stands; a field that stands there in
// both ways is given twice.
func TestShownSpecWithFaults(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"name": "a", "nodes": 1, "walltime": "8h", "walltime_seconds": 60}`:              "walltime",
		`{"name": "a", "nodes": 1, "walltime_seconds": "long"}`:                            "walltime",
		`{"name": "a", "nodes": 1, "machine": {"cores": {"op": "~", "value": 2}}}`:         "machine.cores",
		`{"name": "a", "nodes": 1, "machine": {"memory_bytes": {"least": 2}}}`:             "machine.memory",
		`{"name": "a", "nodes": 1, "volumes": [{"target": "/data"}]}`:                      "volumes[0]",
		`{"name": "a", "nodes": 1, "volumes": [{"volume": "x", "target": "/etc"}]}`:        "volumes[0]",
		`{"name": "a", "nodes": 1, "start": {"until": "2020-01-01T00:00:00Z"}}`:            "start.before",
		`{"name": "a", "nodes": 1, "allowed": "everything"}`:                               "allowed",
		`{"name": "a", "nodes": 1, "machine": {"cores": {"op": ">=", "value": [2, 3]}}}`:   "machine.cores",
		`{"name": "a", "nodes": 1, "retain_seconds": [1], "machine": {"memory_bytes":{}}}`: "retain machine.memory",
	} {
		_, _, err := Read([]byte(text), JSON, Defaults{Now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)})
		e := Error(nil)
		if err != nil {
			e = err.(*muster.Error)
		}
		var fields []string
		if e != nil {
			for _, p := range e.Problems {
				fields = append(fields, p.Field)
				if p.Place == "" {
					t.Errorf("%s: %s has no place", text, p.Field)
				}
			}
		}
		if strings.Join(fields, " ") != want {
			t.Errorf("%s: %v", text, err)
		}
	}
}
