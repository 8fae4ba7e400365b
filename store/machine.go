package store

import (
	"cmp"
	"slices"

	"github.com/muster-hpc/muster"
)

func noMachine(id muster.MachineID) *muster.Error {
	return muster.Errorf(muster.ENotFound, "there is no machine %q", id).Because(muster.ReasonNoSuchMachine).
		WithHint("`muster machine list` shows the machines")
}

// Machine returns one machine. Whoever may not see its tenant finds Cluster
// and Node empty.
func (tx *Tx) Machine(id muster.MachineID) (muster.Machine, error) {
	if tx.who.Admin {
		m, err := tx.rawMachine(id)
		if err == nil && m.ID == "" {
			err = noMachine(id)
		}
		return m, err
	}
	list, err := tx.machines(`id = ?`, string(id))
	if err != nil {
		return muster.Machine{}, err
	}
	if len(list) == 0 {
		return muster.Machine{}, noMachine(id)
	}
	return list[0], nil
}

// Machines returns machines in the order of their IDs. Whoever may not see a
// tenant finds Cluster and Node of its machines empty, and finds none by it.
func (tx *Tx) Machines(f MachineFilter) ([]muster.Machine, error) {
	if tx.who.Admin {
		t, err := tx.allMachines()
		if err != nil {
			return nil, err
		}
		if list, ok := t.all(tx.s, f.match); ok {
			list = list[:min(len(list), cmp.Or(f.Limit, len(list)))]
			for i := range list {
				list[i] = cloneMachine(list[i])
			}
			return list, nil
		}
	}
	w := in(&where{cond: "1"}, "phase", f.Phases)
	if f.Cluster != "" {
		who, more := scope(tx.who)
		w.is("cluster", string(f.Cluster)).and(who, more...)
	}
	w.is("provider", f.Provider).is("class", f.Class).above("id", string(f.After)).by("id", f.Limit)
	return tx.machines(w.cond, w.args...)
}

// match reports whether a machine is asked for.
func (f *MachineFilter) match(m *muster.Machine) bool {
	return (len(f.Phases) == 0 || slices.Contains(f.Phases, m.Phase)) && (f.Cluster == "" || m.Cluster == f.Cluster) &&
		(f.Provider == "" || m.Provider == f.Provider) && (f.Class == "" || m.Facts.Class == f.Class) && m.ID > f.After
}

// Site returns all machines in the order of their IDs, for deciding about the
// whole site. What the records point at is shared: it is read only. Only
// administrators and Muster itself see it.
func (tx *Tx) Site() ([]muster.Machine, error) {
	if !tx.who.Admin {
		return nil, noMachine("")
	}
	t, err := tx.allMachines()
	if err != nil {
		return nil, err
	}
	if list, ok := t.all(tx.s, func(*muster.Machine) bool { return true }); ok {
		return list, nil
	}
	return tx.rawMachines(nil, `1 ORDER BY id`)
}

// allMachines returns what the cache has of machines, which it reads when it has
// none; nil: it may not keep them.
func (tx *Tx) allMachines() (*set[muster.MachineID, muster.Machine], error) {
	if err := tx.s.usable(false); err != nil {
		return nil, err
	}
	c := &tx.s.db.cache
	c.mu.RLock()
	t := c.machines
	c.mu.RUnlock()
	if t != nil || !tx.s.current() {
		return t, nil
	}
	var all []entry[muster.Machine]
	list, err := tx.rawMachines(func(_ int, h head) { all = append(all, entry[muster.Machine]{rev: h.rev}) }, `1 ORDER BY id`)
	if err != nil {
		return nil, err
	}
	for i, m := range list {
		all[i].v = m
	}
	t = newSet(kind[muster.MachineID, muster.Machine]{
		key:   func(m *muster.Machine) muster.MachineID { return m.ID },
		order: func(a, b *muster.Machine) int { return cmp.Compare(a.ID, b.ID) },
	}, all)
	tx.s.keep(func(c *cache) { c.machines = t })
	return t, nil
}

// machines reads rows, leaves out what the actor may not see, and blanks the
// tenants that they may not know.
func (tx *Tx) machines(cond string, args ...any) ([]muster.Machine, error) {
	var heads []head
	list, err := tx.rawMachines(func(_ int, h head) { heads = append(heads, h) }, cond, args...)
	if err != nil {
		return nil, err
	}
	out := list[:0]
	for i, m := range list {
		if allowed(tx.who, read, record{kind: "machine", owner: heads[i].owner, project: heads[i].project}) {
			out = append(out, blank(tx.who, heads[i].owner, heads[i].project, m))
		}
	}
	return out, nil
}

// rawMachines reads rows whoever asks.
func (tx *Tx) rawMachines(each func(int, head), cond string, args ...any) ([]muster.Machine, error) {
	return load(tx.s, table[muster.MachineID, muster.Machine]{
		name: "machines", doc: machineDoc,
		same:  func(h head, m muster.Machine) bool { return string(m.ID) == h.id && string(m.Phase) == h.phase },
		known: tx.s.db.cache.machineAt,
	}, each, cond, args...)
}

// PutMachine inserts or changes a machine. A change of phase is checked
// against the transition table and leaves an audit line; so does a text. Its
// Cluster and Node must be set exactly while it is allocated or active, and
// when the transaction's function ends that node must be filled by this
// machine. PhaseSince is filled in where the caller left it.
//
// Users may do one thing: give a free machine to a cluster of theirs. Then
// only phase, cluster, node and attempt are taken from m.
//
// Errors: ENotFound if the actor may not change it, EConflict for a transition
// that the table does not have, or when the machine or the node is taken.
func (tx *Tx) PutMachine(m muster.Machine, text string) error {
	if err := tx.s.usable(true); err != nil {
		return err
	}
	if m.ID == "" || m.Provider == "" {
		return defect("a machine needs an ID and a provider")
	}
	if err := checkText(string(m.ID), m.Provider, m.Facts.Class); err != nil {
		return err
	}
	if (m.Cluster == "") != (m.Node == "") || m.Phase.Held() != (m.Cluster != "") {
		return muster.Errorf(muster.EConflict, "machine %s is %s and has cluster %q and node %q", m.ID, m.Phase, m.Cluster, m.Node).Because(muster.ReasonMachineInUse).
			WithHint("a machine has a cluster and a node exactly while it is allocated or active")
	}
	old, err := tx.rawMachine(m.ID)
	if err != nil {
		return err
	}
	if m, err = tx.claim(m, old); err != nil {
		return err
	}
	if !old.Phase.CanBecome(m.Phase) || m.Phase == "" {
		return badTransition("machine", string(m.ID), string(old.Phase), string(m.Phase))
	}
	if old.Phase.Held() && m.Phase.Held() && (old.Cluster != m.Cluster || old.Node != m.Node) {
		return muster.Errorf(muster.EConflict, "machine %s belongs to node %s of %s", m.ID, old.Node, old.Cluster).Because(muster.ReasonMachineInUse).
			WithHint("it must be cleaned before it goes to another node")
	}
	if m.Phase != old.Phase && m.PhaseSince.Equal(old.PhaseSince) {
		m.PhaseSince = tx.now()
	}
	line := muster.Audit{Kind: muster.AuditMachine, Object: string(m.ID), From: string(old.Phase), To: string(m.Phase), Text: text}
	owner, project := "system", ""
	if tenant := firstOf(m.Cluster, old.Cluster); tenant != "" {
		c, err := tx.rawTenant(tenant)
		if err != nil {
			return err
		}
		line.Cluster, line.Owner, line.Project = tenant, c.Owner, c.Project
		if m.Cluster != "" {
			owner, project = line.Owner, line.Project
		}
	}
	claims, err := tx.claimsOf(m, old)
	if err != nil {
		return err
	}
	tx.s.touch(m.ID)
	if err := tx.writeMachine(m, old, owner, project); err != nil {
		return err
	}
	if err := tx.holdParts(claims); err != nil {
		return err
	}
	if err := tx.chronicle(m, old, text, firstOf(line.Owner, "system"), line.Project); err != nil {
		return err
	}
	if m.Phase == old.Phase && text == "" {
		return nil
	}
	return tx.log(line)
}

// rawMachine is a machine, whoever asks; empty when there is none.
func (tx *Tx) rawMachine(id muster.MachineID) (muster.Machine, error) {
	if m, ok := pending[muster.Machine](tx.s, id); ok {
		return cloneMachine(m), tx.s.usable(false)
	}
	t, _ := tx.allMachines() // that another record is damaged does not matter here
	if m, known := t.find(tx.s, id); known {
		return cloneMachine(m), nil
	}
	list, err := tx.rawMachines(nil, `id = ?`, string(id))
	if err != nil || len(list) == 0 {
		return muster.Machine{}, err
	}
	return list[0], nil
}

// claim authorizes a change of a machine, and limits what a user may change.
func (tx *Tx) claim(m, old muster.Machine) (muster.Machine, error) {
	absent := noMachine(m.ID)
	if authorize(tx.who, write, record{kind: "machine"}, absent) == nil {
		return m, nil
	}
	if old.Phase != muster.MachineFree || m.Phase != muster.MachineAllocated {
		return m, absent
	}
	c, err := tx.tenant(m.Cluster)
	if err != nil {
		return m, err
	}
	if err := authorize(tx.who, write, clusterRecord(tx.who, c), absent); err != nil {
		return m, err
	}
	old.Phase, old.Cluster, old.Node, old.Attempt = m.Phase, m.Cluster, m.Node, m.Attempt
	return old, nil
}

func (tx *Tx) writeMachine(m, old muster.Machine, owner, project string) error {
	doc, sum, err := encode(machineDoc, &m)
	if err != nil {
		return err
	}
	if old.ID != "" && m.Phase == old.Phase { // else it certainly changed
		if before, _, err := encode(machineDoc, &old); err == nil && before == doc {
			return nil
		}
	}
	rev := tx.s.nextRev()
	if old.ID == "" {
		_, err = tx.s.exec(`INSERT INTO machines (id, owner, project, provider, class, phase, cluster, node, rev, sum, doc)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			string(m.ID), owner, project, m.Provider, m.Facts.Class, string(m.Phase), null(m.Cluster), null(m.Node), rev, sum, doc)
	} else {
		_, err = tx.s.exec(`UPDATE machines SET owner = ?, project = ?, provider = ?, class = ?, phase = ?, cluster = ?, node = ?, rev = ?, sum = ?, doc = ? WHERE id = ?`,
			owner, project, m.Provider, m.Facts.Class, string(m.Phase), null(m.Cluster), null(m.Node), rev, sum, doc, string(m.ID))
	}
	if err == nil { // only what was written is remembered, whatever the caller makes of the error
		tx.s.changed(m.ID, entry[muster.Machine]{rev, cloneMachine(m)})
	}
	return err
}

func firstOf[S ~string](a, b S) S {
	if a != "" {
		return a
	}
	return b
}
