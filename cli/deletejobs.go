package cli

import (
	"context"
	"fmt"
	"sort"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/api/client"
	"github.com/muster-hpc/muster/internal/plaintext"
	"github.com/muster-hpc/muster/wire"
)

// confirmDelete says what is lost with a cluster, and asks for what cannot be undone: its
// home, and jobs that run. Jobs alone stop nobody who cannot be asked: scripts end clusters.
func (a *app) confirmDelete(ctx context.Context, k *client.Client, q *confirm, ref string, erase bool) error {
	jobs := ""
	top, err := k.Top(ctx, ref)
	switch {
	case muster.CodeOf(err) == muster.ENotFound:
		return nil // the deletion says so
	case err == nil:
		jobs = runningText(ref, top.Jobs)
	}
	switch {
	case erase && !q.yes:
		what := "the home of " + ref + " would be erased with it, and could not be restored"
		if jobs != "" {
			what = jobs + ", and " + what
		}
		return q.word(what, ref)
	case jobs != "" && q.asks():
		return q.word(jobs+", and ended with it", "yes", "y")
	case jobs != "" && a.output == "":
		fmt.Fprintf(a.env.Err, "note: %s, and ended with it\n", clean(jobs))
	}
	return nil
}

// runningText says how many jobs run on a cluster, and whose; "" for none.
func runningText(ref string, jobs []wire.Job) string {
	by := map[string]int{}
	all := 0
	for _, j := range jobs {
		if j.State == "running" || j.State == "suspended" { // of a cluster that stands still
			by[j.User]++
			all++
		}
	}
	if all == 0 {
		return ""
	}
	users := make([]string, 0, len(by))
	for user := range by {
		users = append(users, user)
	}
	sort.Slice(users, func(i, j int) bool {
		if by[users[i]] != by[users[j]] {
			return by[users[i]] > by[users[j]]
		}
		return users[i] < users[j]
	})
	parts := make([]string, len(users))
	for i, user := range users {
		parts[i] = fmt.Sprintf("%d of %s", by[user], user)
	}
	verb := "run"
	if all == 1 {
		verb = "runs"
	}
	least := ""
	if len(jobs) >= wire.MaxJobs { // the rest is not listed
		least = "at least "
	}
	return fmt.Sprintf("%s%s %s on %s (%s)", least, plaintext.Count(all, "job"), verb, ref, strings.Join(parts, ", "))
}
