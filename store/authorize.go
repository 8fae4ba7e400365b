package store

import (
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
)

// verb is what an actor wants to do with a record.
type verb int

const (
	read verb = iota
	write
)

// record is what authorize needs to know of one.
type record struct {
	kind    string // topology, cluster, node, certificate, hpl, program, program-run, platform, experiment, volume, machine, registration, user, token, gateway-session, audit, history, secret, join, meta
	owner   string
	project string
	// sharedWith: the actor is one of the users of the cluster that it is, or is of.
	sharedWith bool
}

// authorize is the one place that decides who may see and change what. It
// returns nil or an ENotFound that is the same as for a record that does not
// exist; absent reports what was asked for. Who may see a cluster, but not change
// it, is told so.
//
// Muster itself may do everything. Administrators may do everything but read
// secrets and make certificates, results of HPL and sessions at the gateway. Everybody else: their own clusters and nodes and those of projects
// that they manage, read and write; those of their other projects, and of other projects that list them as users, read
// only; their projects' volumes, read and write; certificates and results of HPL of the clusters that they see; machines, read only (blank hides the tenant); themselves and
// people of their projects, read only (but their own keys they may change);
// programs and platforms of their projects, read only, and write what they added or manage; runs of programs of their
// projects, read only, and write their own; experiments of their projects, read only, and write their own and those
// of projects that they manage;
// their own tokens and sessions at the gateway; the audit lines of their projects and about themselves.
func authorize(who muster.Actor, v verb, r record, absent *muster.Error) error {
	if allowed(who, v, r) {
		return nil
	}
	if v == write && (r.kind == "cluster" || r.kind == "node") && allowed(who, read, r) {
		return muster.Errorf(muster.EForbidden, "you may see this cluster of %s, not change it", r.owner).Because(muster.ReasonNotYours).
			WithHint("ask %s, or a manager of project %s: muster project show %[2]s", r.owner, r.project)
	}
	if v == write && r.kind == "program" && allowed(who, read, r) {
		return muster.Errorf(muster.EForbidden, "you may run this program of %s, not change it", r.owner).Because(muster.ReasonNotYours).
			WithHint("ask %s, or a manager of project %s: muster project show %[2]s", r.owner, r.project)
	}
	if v == write && r.kind == "platform" && allowed(who, read, r) {
		return muster.Errorf(muster.EForbidden, "%s loaded this platform", r.owner).Because(muster.ReasonNotYours).
			WithHint("ask %s, or a manager of project %s: muster project show %[2]s", r.owner, r.project)
	}
	if v == write && r.kind == "experiment" && allowed(who, read, r) {
		return muster.Errorf(muster.EForbidden, "this is an experiment of %s", r.owner).Because(muster.ReasonNotYours).WithHint("run the file yourself, under another name")
	}
	if v == write && r.kind == "program-run" && allowed(who, read, r) {
		return muster.Errorf(muster.EForbidden, "this is a run of %s", r.owner).Because(muster.ReasonNotYours).WithHint("run the program yourself: muster program run")
	}
	return absent
}

func allowed(who muster.Actor, v verb, r record) bool {
	if who.Name == "" {
		return false // nobody, a zero Actor
	}
	if isSystem(who) {
		return true
	}
	switch r.kind {
	case "secret", "join", "meta":
		return false
	case "certificate", "hpl", "gateway-session":
		if v == write {
			return false
		}
	}
	if who.Admin {
		return true
	}
	switch r.kind {
	case "cluster", "node", "certificate", "hpl":
		if v == write {
			return r.owner == who.Name || r.project != "" && who.Manages(r.project)
		}
		return mine(who, r) || r.sharedWith
	case "volume", "course", "template":
		return mine(who, r)
	case "program", "platform", "experiment":
		if v == write {
			return who.In(r.project) && (r.owner == who.Name || who.Manages(r.project))
		}
		return who.In(r.project)
	case "program-run":
		if v == write {
			return r.owner == who.Name
		}
		return mine(who, r)
	case "project":
		return v == read && who.In(r.project)
	case "machine", "history", "maintenance", "topology":
		return v == read
	case "user":
		// project is one that is shared, if there is one.
		return r.owner == who.Name || v == read && r.project != "" && who.In(r.project)
	case "token", "gateway-session":
		return r.owner == who.Name
	case "audit":
		return v == read && (r.owner == who.Name || r.project != "" && who.In(r.project))
	}
	return false
}

func mine(who muster.Actor, r record) bool {
	return r.owner == who.Name || r.project != "" && who.In(r.project)
}

// isSystem tells Muster's own loops, and the agents that they speak for, from
// administrators. No user can have such a name: PutUser refuses them.
func isSystem(who muster.Actor) bool {
	return who.Admin && (who.Name == "system" || strings.HasPrefix(who.Name, "agent:"))
}

// scope is the same decision as authorize for a list of records of kind
// volume or audit, as an SQL condition on the columns owner and project. Each
// row passes authorize as well.
func scope(who muster.Actor) (cond string, args []any) {
	switch {
	case who.Name == "":
		return "0", nil
	case who.Admin:
		return "1", nil
	}
	projects := slices.DeleteFunc(slices.Clone(who.Projects), func(p string) bool { return p == "" })
	args = append(args, who.Name)
	for _, p := range projects {
		args = append(args, p)
	}
	return "(owner = ? OR project IN (" + marks(len(projects)) + "))", args
}

// scopeUsed is the same for a list of clusters or nodes; id is the column with
// the ID of the cluster.
func scopeUsed(who muster.Actor, id string) (cond string, args []any) {
	cond, args = scope(who)
	if who.Admin || who.Name == "" {
		return cond, args
	}
	shared, more := sharedWithOf(who, id)
	return "(" + cond + " OR " + shared + ")", append(args, more...)
}

// sharedWithOf reports whether the actor is one of the users of the cluster whose ID
// is in a column. Administrators and nobody are not looked for.
func sharedWithOf(who muster.Actor, id string) (cond string, args []any) {
	if who.Admin || who.Name == "" {
		return "0", nil
	}
	return id + " IN (SELECT cluster FROM cluster_users WHERE name = ?)", []any{who.Name}
}

// blank hides the tenant of a machine from those who may not know it, and of a
// machine that failed whom it failed.
func blank(who muster.Actor, owner, project string, m muster.Machine) muster.Machine {
	switch {
	case who.Admin:
	case m.Cluster == "":
		for i, c := range m.Conditions {
			if c.Code == muster.ConditionSuspect {
				m.Conditions[i].Text = "it is suspected of a fault"
			}
		}
	case !mine(who, record{owner: owner, project: project}):
		m.Cluster, m.Node, m.Attempt, m.Conditions = "", "", 0, nil
	}
	return m
}

// CanSee reports whether an actor may see a committed audit line: for passing on
// the lines of a Feed. It agrees with Audits.
func (db *DB) CanSee(who muster.Actor, a muster.Audit) bool {
	return allowed(who, read, auditRecord(a))
}

func auditRecord(a muster.Audit) record {
	return record{kind: "audit", owner: a.Owner, project: a.Project}
}
