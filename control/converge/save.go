package converge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"filippo.io/age"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/vm/save"
)

// Secrets of a cluster: where a save or a resume is, and the key of its states.
const (
	saveRecord = "vm-save"
	saveKey    = "vm-save-key"
)

// savesAtOnce is how many machines of a cluster are written or read at once. More of them wait for the same disk.
const savesAtOnce = 8

// readSave is where the save of a cluster is; nil: nothing of it is saved.
func readSave(tx *store.Tx, id muster.ClusterID) (*save.Record, error) {
	b, err := tx.Secret(id, saveRecord)
	if muster.CodeOf(err) == muster.ENotFound {
		return nil, nil //nolint:nilnil // there is none
	}
	if err != nil {
		return nil, err
	}
	r, err := save.DecodeRecord("the saved state of "+string(id), b)
	return &r, err
}

func putSave(tx *store.Tx, id muster.ClusterID, r save.Record) error {
	b, err := r.Encode()
	if err != nil {
		return err
	}
	return tx.PutSecret(id, saveRecord, b)
}

// beginSave records a save, and the key of its states.
func beginSave(tx *store.Tx, id muster.ClusterID, r save.Record) error {
	key, err := save.NewKey()
	if err != nil {
		return err
	}
	return errors.Join(tx.PutSecret(id, saveKey, []byte(key.String())), putSave(tx, id, r))
}

func dropSave(tx *store.Tx, id muster.ClusterID) error {
	return errors.Join(tx.DropSecret(id, saveKey), tx.DropSecret(id, saveRecord))
}

// saveJournal is the record of a cluster's save in the store.
type saveJournal struct {
	db *store.DB
	id muster.ClusterID

	mu     sync.Mutex
	erased []string // receipts that are not on record yet
}

func (j *saveJournal) Get(ctx context.Context) (r save.Record, err error) {
	err = j.db.View(ctx, muster.System(), func(tx *store.Tx) error {
		is, err := readSave(tx, j.id)
		if err == nil && is != nil {
			r = *is
		}
		return err
	})
	return r, err
}

// Put records where it is. With the last state its key is forgotten.
func (j *saveJournal) Put(ctx context.Context, r save.Record) error {
	return j.db.Update(ctx, muster.System(), func(tx *store.Tx) error {
		if r.Phase == save.Live {
			if err := tx.DropSecret(j.id, saveKey); err != nil {
				return err
			}
		}
		return errors.Join(putSave(tx, j.id, r), j.note(tx))
	})
}

// note puts receipts into the cluster's history.
func (j *saveJournal) note(tx *store.Tx) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	slices.Sort(j.erased)
	for _, text := range j.erased {
		if err := tx.Note(muster.AuditCluster, string(j.id), j.id, text); err != nil {
			return err
		}
	}
	return nil
}

func (j *saveJournal) receipt(node string, r save.Receipt) {
	text := fmt.Sprintf("the saved state of %s was erased: %d bytes", node, r.Bytes)
	for _, s := range r.Steps {
		text += "; " + s.Check
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.erased = append(j.erased, text)
}

// stepSave makes the next step of a cluster's save or resume beside the loop, or erases all of it.
func (v *Converger) stepSave(view View, erase bool) {
	id := view.Cluster.ID
	v.mu.Lock()
	w := v.workOf(id)
	if w.saving.Busy {
		v.mu.Unlock()
		return
	}
	w.saving.Busy = true
	v.mu.Unlock()
	// Erasing concerns no machine. All else does: nobody else does anything to them, or draws conclusions.
	var held []muster.MachineID
	if r := view.Save; !erase && r != nil && r.Phase != save.Erasing {
		for _, n := range view.Nodes {
			if m, ok := view.Machines[n.Machine]; ok && ownRunning(n, m) && v.observations.begin(m.ID, nil) {
				held = append(held, m.ID)
			}
		}
	}
	v.calls.Go(func() {
		ctx, cancel := v.callContext(v.c.CleanTimeout)
		err := v.makeStep(ctx, view, erase)
		cancel()
		for _, m := range held {
			v.observations.end(m, func(*Observation) {})
		}
		v.mu.Lock()
		if w.saving.Busy = false; err == nil {
			w.saving = Work{}
		} else {
			w.saving.Err = err
			w.saving.Tries++
			w.saving.Retry = v.c.Clock.Now().Add(v.c.Limits.retryAfter(w.saving.Tries))
		}
		v.mu.Unlock()
		if err != nil && v.ctx.Err() == nil {
			v.c.Log.Warn("saving or resuming virtual machines failed", "cluster", id, "error", err)
		}
		for _, name := range providersOf(view) {
			if o := v.observers[name]; o != nil && len(held) > 0 {
				o.ask(held...)
			}
		}
		v.Wake(id)
	})
}

func (v *Converger) makeStep(ctx context.Context, view View, erase bool) error {
	id := view.Cluster.ID
	j := &saveJournal{db: v.c.Store, id: id}
	var key *age.X25519Identity
	err := v.c.Store.View(ctx, muster.System(), func(tx *store.Tx) error {
		b, err := tx.Secret(id, saveKey)
		if muster.CodeOf(err) == muster.ENotFound {
			return nil // it was forgotten with the last state
		}
		if err == nil {
			key, err = age.ParseX25519Identity(string(b))
		}
		return err
	})
	if err != nil {
		return err
	}
	if v.c.States == nil {
		return muster.Errorf(muster.EUnavailable, "this server keeps no saved states").Because(muster.ReasonNoProvider)
	}
	if erase {
		r, err := j.Get(ctx)
		for _, n := range r.Nodes {
			receipt, bad := v.c.States.Erase(save.NameOf(id, n.Name), v.c.Clock.Now())
			if err = errors.Join(err, bad); bad == nil && receipt.Bytes > 0 {
				j.receipt(n.Name, receipt)
			}
		}
		if err != nil {
			return err
		}
		return v.c.Store.Update(ctx, muster.System(), func(tx *store.Tx) error { return errors.Join(dropSave(tx, id), j.note(tx)) })
	}
	names := providersOf(view)
	if len(names) != 1 || v.c.Savers[names[0]] == nil {
		return muster.Errorf(muster.EUnavailable, "this server cannot save the machines of cluster %s now", id).Because(muster.ReasonNoProvider).
			WithHint("start it with the options that it had when they were saved")
	}
	boots := map[string]provider.DesiredState{}
	for _, n := range view.Nodes {
		if m, ok := view.Machines[n.Machine]; ok && m.Cluster == n.Cluster && m.Node == n.Name {
			boots[n.Name] = v.bootOf(view, n, m, "")
		}
	}
	room := func() error {
		return v.c.States.Promise(save.NameOf(id, ""), SavedMemory(view.Cluster.Spec, (&decider{View: view}).heldMachines()))
	}
	if view.Save.Phase == save.Saving { // what a server promised that was killed
		_ = room()
	}
	q := &save.Sequence{
		Journal: j, AtOnce: savesAtOnce,
		Room: room,
		Machines: v.c.Savers[names[0]].Saver(provider.Saving{
			States: v.c.States, Key: key, Boots: boots, Erased: j.receipt,
			Token: func(ctx context.Context, node string) (string, error) { return v.resumeToken(ctx, id, node) },
		}),
	}
	if v.c.Volumes != nil {
		q.Volumes = heldVolumes{v.c.Volumes, id}
	}
	phase, err := q.Step(ctx)
	if phase != save.Stopping && phase != save.Saving {
		v.c.States.Settle(save.NameOf(id, ""))
	}
	if err != nil && phase == view.Save.Phase {
		return err // the same again
	}
	if err != nil {
		v.c.Log.Warn("saving or resuming virtual machines failed", "cluster", id, "phase", phase, "error", err)
	}
	return nil
}

// resumeToken is a one-time token for the agent of a node whose machine goes on; "": it has joined, or goes on as it was.
func (v *Converger) resumeToken(ctx context.Context, id muster.ClusterID, node string) (secret string, err error) {
	err = v.c.Store.Update(ctx, muster.System(), func(tx *store.Tx) error {
		secret = ""
		n, err := tx.Node(id, node)
		if err != nil || n.Phase != muster.NodeBooting {
			return err
		}
		text, hash := pki.NewJoinToken()
		secret = text
		return tx.PutJoin(store.Join{Hash: hash, Machine: n.Machine, Cluster: id, Node: node, Attempt: n.Attempt, Expires: v.c.Clock.Now().Add(v.c.TokenLife)})
	})
	return secret, err
}

// stillOfSave reports whether a machine is of a cluster whose machines are being saved.
func (v *Converger) stillOfSave(id muster.MachineID) bool {
	c := v.observations.owner(id)
	v.mu.Lock()
	defer v.mu.Unlock()
	w := v.work[c]
	return w != nil && w.silent
}
