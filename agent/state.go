package agent

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/document"
	"github.com/muster-hpc/muster/wire"
)

// state is what an agent remembers beside its credential and configuration.
type state struct {
	Machine    muster.MachineID `json:"machine"`
	Attempt    int64            `json:"attempt"`
	Generation int64            `json:"generation"` // in force
	Ready      bool             `json:"ready"`
	Cursor     string           `json:"cursor,omitempty"`
	Stages     []muster.Stage   `json:"stages,omitempty"`
}

const stateDoc document.Kind[state] = "agent-state/1"

// loadState reads what was kept. What belongs to another machine or attempt is
// deleted: a credential is good for one boot only.
// A state of another version is an error: the credential beside it is still good.
func (a *agent) loadState() (state, error) {
	var s state
	if b, err := a.Store.Load(fileState); err == nil {
		if s, err = stateDoc.Decode(fileState, b); muster.CodeOf(err) == muster.EConflict {
			return state{}, err
		}
	}
	if s.Machine == a.Bootstrap.Machine && s.Attempt == a.Bootstrap.Attempt {
		return s, nil
	}
	for _, name := range []string{fileCredential, fileConfig, fileState} {
		if err := a.Store.Delete(name); err != nil {
			a.Log.Warn("removing stale file failed", "name", name, "error", err)
		}
	}
	a.saveState() // the key that is made next is of this attempt
	return state{}, nil
}

func (a *agent) saveState() {
	a.apply.mu.Lock()
	ready, generation := a.apply.ready, a.apply.done
	a.apply.mu.Unlock()
	a.out.mu.Lock()
	s := state{
		Machine: a.Bootstrap.Machine, Attempt: a.Bootstrap.Attempt, Generation: generation, Ready: ready,
		Cursor: a.out.cursor, Stages: slices.Clone(a.out.stages),
	}
	a.out.mu.Unlock()
	b, err := stateDoc.Encode(&s)
	if err == nil {
		err = a.Store.Save(fileState, b)
	}
	if err != nil {
		a.Log.Warn("saving agent state failed", "error", err)
	}
}

// highestEpoch is the highest epoch of a server that this machine has obeyed since it was
// started: by what was kept, and by whose boot it is. It outlives the boots of a node, as no
// server of a lower one has a say any more.
func (c *Config) highestEpoch() int64 {
	least := muster.EpochOf(c.Bootstrap.Attempt)
	b, err := c.Store.Load(fileEpoch)
	if err != nil {
		return least
	}
	kept, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	if err != nil {
		c.Log.Warn("stored epoch unusable", "error", err)
	}
	return max(least, kept)
}

func (c *Config) keepEpoch(epoch int64) {
	if err := c.Store.Save(fileEpoch, []byte(strconv.FormatInt(epoch, 10)+"\n")); err != nil {
		c.Log.Warn("saving server epoch failed", "error", err)
	}
}

func (a *agent) keepCredential() {
	b, err := a.cred.marshal()
	if err == nil {
		err = a.Store.Save(fileCredential, b)
	}
	if err != nil {
		a.Log.Warn("saving credential failed", "error", err)
	}
}

func (a *agent) loadConfig() *wire.NodeConfig {
	b, err := a.Store.Load(fileConfig)
	if err != nil {
		return nil
	}
	c := new(wire.NodeConfig)
	if json.Unmarshal(b, c) != nil {
		return nil
	}
	return c
}

func (a *agent) keepConfig(c *wire.NodeConfig) {
	if _, ok := a.Store.(none); ok {
		return
	}
	b, err := json.Marshal(c)
	if err == nil {
		err = a.Store.Save(fileConfig, b)
	}
	if err != nil {
		a.Log.Warn("saving configuration failed", "error", err)
	}
}

// tell passes the status on to whoever wants it, once a second or when the
// state changes.
func (a *agent) tell() {
	if a.Status == nil {
		return
	}
	now := a.Clock.Now()
	a.out.mu.Lock()
	stages := slices.Clone(a.out.stages)
	var checks []wire.Check
	for _, c := range a.out.checks {
		checks = append(checks, c.Check)
	}
	current, generation, waiting, dropped := a.out.state, a.out.generation, len(a.out.lines), a.out.dropped
	a.out.mu.Unlock()
	a.mu.Lock()
	s := a.status
	a.mu.Unlock()
	what := current + s.Trouble
	if what == a.toldWhat && now.Sub(a.toldAt) < time.Second {
		return
	}
	a.toldWhat, a.toldAt = what, now
	if a.cred.cert != nil {
		s.State, s.Expires = current, a.cred.cert.Leaf.NotAfter
	}
	s.Generation, s.Stages, s.Checks, s.Waiting, s.Dropped = generation, stages, checks, waiting, dropped
	s.UpdatedAt = now
	a.Status(s)
}
