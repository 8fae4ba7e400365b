package local

import (
	"bufio"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// findGroups looks up which control group hierarchies this host has and where
// the machines of an instance belong in them. mountinfo has the form of
// /proc/self/mountinfo.
func findGroups(mountinfo []byte, name string) (*groups, error) {
	g := &groups{v1: map[string]string{}}
	sc := bufio.NewScanner(strings.NewReader(string(mountinfo)))
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		at, kind, super, ok := parseMount(sc.Text())
		switch {
		case !ok:
		case kind == "cgroup2" && g.unified == "":
			g.unified = filepath.Join(at, name)
		case kind == "cgroup":
			for _, c := range v1Controllers() {
				if g.v1[c] == "" && slices.Contains(strings.Split(super, ","), c) {
					g.v1[c] = filepath.Join(at, name)
				}
			}
		}
	}
	if err := sc.Err(); err != nil {
		return nil, err
	}
	if g.unified == "" {
		return nil, errors.New("no unified control group hierarchy (cgroup2) is mounted")
	}
	// Controllers that live in the unified hierarchy make this the v2 form;
	// a lone name=systemd hierarchy beside it does not change that.
	if g.v1["memory"] == "" && g.v1["cpuset"] == "" && g.v1["pids"] == "" {
		g.v1 = nil
	}
	return g, nil
}

// parseMount takes mount point, type and super options from one line.
func parseMount(line string) (at, kind, super string, ok bool) {
	left, right, found := strings.Cut(line, " - ")
	if !found {
		return "", "", "", false
	}
	l, r := strings.Fields(left), strings.Fields(right)
	if len(l) < 5 || len(r) < 3 {
		return "", "", "", false
	}
	return l[4], r[0], r[2], true
}

// hostGroups finds the hierarchies of this host.
func hostGroups(ctx context.Context, name string) (*groups, error) {
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	g, err := findGroups(b, name)
	if err != nil || g.old() || !systemdHost() {
		return g, err
	}
	if g.scope, err = openScope(ctx, filepath.Dir(g.unified), name, scopeCommand(name)); err != nil {
		return nil, err
	}
	g.unified = g.scope.dir
	return g, nil
}
