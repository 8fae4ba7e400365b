package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
)

// watchLimit is how long something may take to be told, and to be well again: a busy host
// is slow, and what heals in seconds is in the table.
const watchLimit = 3 * time.Minute

// harm is something that people rely on and that stops working.
type harm struct {
	what, node string
	inflict    func() error
	// undo ends it; nil: it must heal by itself.
	undo func() error
	// lasts is how long it stays so, at least.
	lasts time.Duration
	// told is the condition that shows meanwhile; "": it need not be told. Then it heals
	// at once, or those who meet it see it.
	told muster.ConditionCode
	// healed is asked before all else that has to work again; nil: there is nothing more.
	healed func() error
}

// TestWatch harms everything that people rely on inside nodes, one after the other: all
// heals or is told, and at the end nothing is out of use. What does not heal by itself
// meanwhile in another cluster is repaired after its deadline of ten minutes.
func TestWatch(t *testing.T) {
	if os.Getenv("MUSTER_WATCH") != "all" || os.Getuid() != 0 {
		t.Skip("breaks all services of real machines for a quarter of an hour, as root: make test-watch")
	}
	s := newFaultSite(t, "6,memory=2GiB", "1536m")
	s.must("create", "late", "-n", "3", "--head", "shared", "--users", s.user, "--wait")
	deadline := s.breakForGood(t)

	s.must("create", "cfd", "-n", "3", "--head", "shared", "--users", s.user, "--wait")
	var table []string
	for _, h := range s.harms() {
		row, err := s.suffer(h)
		if err != nil {
			t.Errorf("%s on %s: %v", h.what, h.node, err)
			row = fmt.Sprintf("%-46s %-4s DID NOT HEAL", h.what, h.node)
		}
		t.Log(row)
		table = append(table, row)
	}
	if row, err := deadline(); err != nil {
		t.Errorf("what does not heal by itself: %v", err)
	} else {
		table = append(table, row)
	}
	for _, c := range []string{"cfd", "late"} {
		if err := s.well(c); err != nil {
			t.Errorf("at the end: %v", err)
		}
	}
	t.Logf("\n%-46s %-4s %10s %10s  %s\n%s", "what", "node", "told after", "well after", "conditions", strings.Join(table, "\n"))
	s.must("delete", "late", "--wait")
	s.nothingLeft()
}

// suffer inflicts one harm, and waits until all is well again.
func (s *faultSite) suffer(h harm) (row string, err error) {
	began := time.Now()
	seen := s.lookAround(failure{})
	codes := ""
	defer func() {
		if codes == "" {
			codes = seen()
		}
	}()
	if err := h.inflict(); err != nil {
		return "", fmt.Errorf("could not be inflicted: %w", err)
	}
	told := "-"
	if h.told != "" {
		after, err := s.until(watchLimit, func() error { return s.tells(h.node, h.told) })
		if err != nil {
			if h.undo != nil {
				err = fmt.Errorf("%w; undone: %w", err, h.undo())
			}
			return "", err
		}
		told = fmt.Sprintf("%.1f s", after.Seconds())
	}
	time.Sleep(time.Until(began.Add(h.lasts)))
	if h.undo != nil {
		if _, err := s.until(watchLimit, h.undo); err != nil {
			return "", fmt.Errorf("it could not be undone: %w", err)
		}
		began = time.Now()
	}
	_, err = s.until(watchLimit, func() error {
		if h.healed != nil {
			if err := h.healed(); err != nil {
				return err
			}
		}
		return s.well("cfd")
	})
	took := time.Since(began)
	codes = seen()
	if err != nil {
		return "", fmt.Errorf("not well: %w; it showed %s", err, codes)
	}
	return fmt.Sprintf("%-46s %-4s %10s %8.1f s  %s", h.what, h.node, told, took.Seconds(), codes), nil
}

// until asks until there is no error.
func (s *faultSite) until(limit time.Duration, ok func() error) (time.Duration, error) {
	began := time.Now()
	for {
		err := ok()
		if err == nil || time.Since(began) > limit {
			return time.Since(began), err
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// tells reports whether a node of cfd, or the cluster, has a condition.
func (s *faultSite) tells(node string, code muster.ConditionCode) error {
	c, err := s.show()
	if err != nil {
		return err
	}
	for _, n := range c.Nodes {
		if n.Name == node && hasCode(n.Conditions, code) {
			return nil
		}
	}
	if hasCode(c.Conditions, code) {
		return nil
	}
	return fmt.Errorf("it is not told as %s: %v", code, c.Conditions)
}

// well reports whether nothing of a cluster is out of use, and a job runs on all nodes.
func (s *faultSite) well(cluster string) error {
	c, err := s.showCluster(cluster)
	if err != nil {
		return err
	}
	if c.Status != "ready" || c.ReadyCount != c.NodeCount {
		return fmt.Errorf("cluster %s is %s, with %d of %d nodes", cluster, c.Status, c.ReadyCount, c.NodeCount)
	}
	for _, code := range brokenCodes() {
		if hasCode(c.Conditions, code) {
			return fmt.Errorf("cluster %s is %s: %v", cluster, code, c.Conditions)
		}
		for _, n := range c.Nodes {
			if hasCode(n.Conditions, code) {
				return fmt.Errorf("node %s of %s is %s: %v", n.Name, cluster, code, n.Conditions)
			}
		}
	}
	command := fmt.Sprintf("timeout 20 srun -Q -N%d --immediate=10 hostname | sort | tr '\\n' ' '; sinfo -hNo '%%N:%%T'", c.NodeCount)
	out, err := s.try(40*time.Second, "", "exec", cluster, "--user", s.user, "--", "sh", "-c", command)
	if err != nil {
		return err
	}
	if !strings.HasPrefix(out, "n01 n02 n03 ") || strings.Contains(out, "drain") || strings.Contains(out, "down") || strings.Contains(out, "*") {
		return fmt.Errorf("not all nodes of %s have jobs: %q", cluster, out)
	}
	return nil
}

// brokenCodes are conditions of nodes and clusters that are not well.
func brokenCodes() []muster.ConditionCode {
	return []muster.ConditionCode{"unhealthy", "unfit", "not-applied", "drained", "not-in-scheduler", "agent-silent", "silent", "late", "cut-off", "degraded", "mass-silence", "scheduler"}
}

func hasCode(list []muster.Condition, code muster.ConditionCode) bool {
	return slices.ContainsFunc(list, func(c muster.Condition) bool { return c.Code == code })
}
