package store

import (
	"database/sql"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/muster-hpc/muster"
)

// How much of a machine's history is kept: the newest so many events, and
// nothing that is older.
const (
	keptEvents   = 500
	keptEventsAt = 2 * 365 * 24 * time.Hour
)

// Kinds of events in a machine's history.
const (
	EventCluster = "cluster" // began or ceased to serve one
	EventFault   = "fault"   // failed under a node, or by itself
	EventFence   = "fence"   // was cut off
	EventTest    = "test"
	EventClean   = "clean"
	EventIntent  = "intent" // what an administrator wants of it
	EventNote    = "note"
	EventPhase   = "phase" // was taken in, set aside or taken back
	// EventHardware: it is made of something else than before.
	EventHardware = "hardware"
)

// PutMachineEvent adds an event to a machine's history. Changes that PutMachine
// writes are there by themselves: clusters, faults, tests, cleanings, intents
// and notes. Only administrators and Muster itself may. No secret may be in it.
func (tx *Tx) PutMachineEvent(e muster.MachineEvent) error {
	if err := tx.s.usable(true); err != nil {
		return err
	}
	if err := authorize(tx.who, write, record{kind: "history"}, noMachine(e.Machine)); err != nil {
		return err
	}
	return tx.machineEvent(e, "", "")
}

// PutFence keeps in the machine's history how it was cut off. Cluster and node
// are those that it had; both may be empty. Only administrators and Muster
// itself may.
func (tx *Tx) PutFence(r muster.FenceRecord, cluster muster.ClusterID, node string) error {
	text := "cut off, proven"
	if !r.Proven {
		text = "it could not be proven that it is cut off"
	}
	if r.Took > 0 {
		text += fmt.Sprintf(", in %.1fs", r.Took.Seconds())
	}
	return tx.PutMachineEvent(muster.MachineEvent{
		Machine: r.Machine, At: r.At, Kind: EventFence, Cluster: cluster, Node: node, Text: text, Steps: r.Steps,
	})
}

// machineEvent writes an event, whoever asks. Without an owner, that of the
// cluster is looked up.
func (tx *Tx) machineEvent(e muster.MachineEvent, owner, project string) error {
	if e.Machine == "" {
		return defect("an event of no machine")
	}
	if e.At.IsZero() {
		e.At = tx.now()
	}
	e.Text, e.Node = cleanText(e.Text), cleanText(e.Node)
	if owner == "" {
		owner = "system"
		if e.Cluster != "" {
			c, err := tx.rawTenant(e.Cluster)
			switch {
			case err == nil:
				owner, project = c.Owner, c.Project
			case muster.CodeOf(err) != muster.ENotFound:
				return err
			}
		}
	}
	doc, sum, err := encode(eventDoc, &e)
	if err != nil {
		return err
	}
	seq := int64(0)
	err = tx.s.one([]any{&seq}, `SELECT seq FROM machine_events WHERE machine = ? ORDER BY seq DESC LIMIT 1`, string(e.Machine))
	if err != nil && !errors.Is(err, errNoRow) {
		return err
	}
	seq++
	if _, err := tx.s.exec(`INSERT INTO machine_events (machine, seq, owner, project, cluster, node, kind, at, sum, doc)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		string(e.Machine), seq, owner, project, string(e.Cluster), e.Node, e.Kind, nanos(e.At), sum, doc); err != nil {
		return err
	}
	return tx.forgetEvents(e.Machine, seq)
}

// forgetEvents deletes what is too much for the machine, and now and then what
// is too old for the site: a few rows, found by an index.
func (tx *Tx) forgetEvents(id muster.MachineID, seq int64) error {
	if seq > keptEvents {
		if _, err := tx.s.exec(`DELETE FROM machine_events WHERE machine = ? AND seq <= ?`, string(id), seq-keptEvents); err != nil {
			return err
		}
	}
	if seq%8 != 0 {
		return nil
	}
	_, err := tx.s.exec(`DELETE FROM machine_events WHERE n IN (SELECT n FROM machine_events WHERE at < ? ORDER BY at LIMIT 200)`,
		nanos(tx.now().Add(-keptEventsAt)))
	return err
}

// MachineEvents returns events of a machine's history, newest first: at most limit of
// them, 0 for all, and only those whose number is below before, unless that is 0. last is
// the number of the last one. Whoever may not see a cluster finds it blank in its events.
func (tx *Tx) MachineEvents(id muster.MachineID, before int64, limit int) (list []muster.MachineEvent, last int64, err error) {
	if err := authorize(tx.who, read, record{kind: "history"}, noMachine(id)); err != nil {
		return nil, 0, err
	}
	if before <= 0 {
		before = math.MaxInt64
	}
	err = tx.s.each(func(r *sql.Rows) error {
		var owner, project, doc string
		var sum int64
		if err := r.Scan(&last, &owner, &project, &sum, &doc); err != nil {
			return err
		}
		e, err := decode(eventDoc, "the history of machine "+string(id), doc, sum)
		if err != nil {
			return err
		}
		list = append(list, blankEvent(tx.who, owner, project, e))
		return nil
	}, `SELECT seq, owner, project, sum, doc FROM machine_events WHERE machine = ? AND seq < ? ORDER BY seq DESC LIMIT ?`, string(id), before, unlimited(limit))
	return list, last, err
}

// blankEvent hides from those who may not know it whose cluster an event is
// about, and what came to pass there.
func blankEvent(who muster.Actor, owner, project string, e muster.MachineEvent) muster.MachineEvent {
	if who.Admin || e.Cluster == "" || mine(who, record{owner: owner, project: project}) {
		return e
	}
	return muster.MachineEvent{Machine: e.Machine, At: e.At, Kind: e.Kind}
}

// LastMachine is the machine that filled a node last, before the one that does
// now: where a lost node was. "" when that is not known any more.
func (tx *Tx) LastMachine(cluster muster.ClusterID, node string) (muster.MachineID, error) {
	if _, err := tx.Cluster(cluster); err != nil {
		return "", err
	}
	var id muster.MachineID
	err := tx.s.one([]any{&id}, `SELECT machine FROM machine_events WHERE cluster = ? AND node = ? AND kind = 'cluster' ORDER BY n DESC LIMIT 1`, string(cluster), node)
	if errors.Is(err, errNoRow) {
		return "", nil
	}
	return id, err
}

// LostNodes returns the nodes that wait for another machine, or will as soon
// as their machine is cut off: the first ones of the site.
func (tx *Tx) LostNodes(limit int) ([]muster.Node, error) {
	cond, args := scopeUsed(tx.who, "cluster")
	return tx.nodes(nil, cond+` AND phase IN ('fencing', 'fenced') ORDER BY cluster, idx LIMIT ?`, append(args, unlimited(limit))...)
}

// chronicle writes into the history what a change of the machine means.
func (tx *Tx) chronicle(m, old muster.Machine, text, owner, project string) error {
	tenant, node := firstOf(m.Cluster, old.Cluster), firstOf(m.Node, old.Node)
	add := func(e muster.MachineEvent) error {
		e.Machine = m.ID
		if e.Cluster == "" {
			return tx.machineEvent(e, "system", "")
		}
		return tx.machineEvent(e, owner, project)
	}
	var events []muster.MachineEvent
	if n := len(m.Faults); n > 0 && (len(old.Faults) == 0 || !m.Faults[n-1].At.Equal(old.Faults[len(old.Faults)-1].At)) {
		events = append(events, muster.MachineEvent{Kind: EventFault, Cluster: tenant, Node: node, Text: firstOf(text, "it failed")})
		text = ""
	}
	switch {
	case m.Cluster != "" && old.Cluster == "":
		events = append(events, muster.MachineEvent{Kind: EventCluster, Cluster: tenant, Node: node, Text: "began to serve"})
	case m.Cluster == "" && old.Cluster != "":
		events = append(events, muster.MachineEvent{Kind: EventCluster, Cluster: tenant, Node: node, Text: "ceased to serve"})
	}
	if r := m.LastTest; r != nil && (old.LastTest == nil || !r.At.Equal(old.LastTest.At)) {
		events = append(events, muster.MachineEvent{Kind: EventTest, At: r.At, Text: outcome(r.Passed, "passed", "failed", time.Duration(r.Took)), Steps: r.Steps})
	}
	if r := m.LastClean; r != nil && (old.LastClean == nil || !r.At.Equal(old.LastClean.At)) {
		events = append(events, muster.MachineEvent{Kind: EventClean, At: r.At, Text: outcome(r.Verified, "verified", "NOT verified", time.Duration(r.Took)), Steps: r.Steps})
	}
	made := m.Intent == muster.IntentNone && len(events) > 0 && events[len(events)-1].Kind == EventTest // the test says it all
	if !made && (m.Intent != old.Intent || m.IntentWhy != old.IntentWhy || m.IntentBy != old.IntentBy) {
		events = append(events, muster.MachineEvent{Kind: EventIntent, Text: firstOf(text, string(m.Intent))})
		text = ""
	}
	if m.Note != old.Note {
		events = append(events, muster.MachineEvent{Kind: EventNote, Text: firstOf(m.Note, "taken away")})
		text = ""
	}
	if m.Phase != old.Phase {
		switch m.Phase {
		case muster.MachineNew, muster.MachineQuarantined, muster.MachineMaintenance, muster.MachineRetired:
			events = append(events, muster.MachineEvent{Kind: EventPhase, Text: string(m.Phase) + suffix(text)})
		case muster.MachineCleaning:
			if old.Phase == muster.MachineMaintenance {
				events = append(events, muster.MachineEvent{Kind: EventPhase, Text: "taken back" + suffix(text)})
			}
		}
	}
	for _, e := range events {
		if err := add(e); err != nil {
			return err
		}
	}
	return nil
}

func outcome(good bool, yes, no string, took time.Duration) string {
	if !good {
		yes = no
	}
	return fmt.Sprintf("%s in %.1fs", yes, took.Seconds())
}

func suffix(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}
