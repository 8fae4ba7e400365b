package store

import (
	"database/sql"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/muster-hpc/muster"
)

// kept is how many durations of a kind, class and image are kept: estimates
// should follow what a site does now.
const kept = 200

// keptCleans is how many records of cleaning are kept of one machine.
const keptCleans = 100

// pruneOneIn is how seldom what is too much is looked for: it means counting
// what is kept. By chance, because what comes may come in a pattern.
const pruneOneIn = 16

// PutClean keeps the record of a cleaning. Only administrators and Muster
// itself may.
func (tx *Tx) PutClean(r muster.CleanRecord) error {
	if err := tx.s.usable(true); err != nil {
		return err
	}
	if err := authorize(tx.who, write, record{kind: "history"}, noMachine(r.Machine)); err != nil {
		return err
	}
	doc, sum, err := encode(cleanDoc, &r)
	if err != nil {
		return err
	}
	if _, err := tx.s.exec(`INSERT INTO cleans (owner, project, machine, at, sum, doc) VALUES ('system', '', ?, ?, ?, ?)`,
		string(r.Machine), nanos(r.At), sum, doc); err != nil {
		return err
	}
	if rand.IntN(pruneOneIn) != 0 {
		return nil
	}
	_, err = tx.s.exec(`DELETE FROM cleans WHERE machine = ? AND n <= (SELECT n FROM cleans WHERE machine = ? ORDER BY n DESC LIMIT 1 OFFSET ?)`,
		string(r.Machine), string(r.Machine), keptCleans)
	return err
}

// Cleans returns the records of a machine's cleanings, newest first.
func (tx *Tx) Cleans(id muster.MachineID, limit int) ([]muster.CleanRecord, error) {
	if err := authorize(tx.who, read, record{kind: "history"}, noMachine(id)); err != nil {
		return nil, err
	}
	var list []muster.CleanRecord
	err := tx.s.each(func(r *sql.Rows) error {
		var doc string
		var sum int64
		if err := r.Scan(&sum, &doc); err != nil {
			return err
		}
		c, err := decode(cleanDoc, "a record of cleaning "+string(id), doc, sum)
		if err != nil {
			return err
		}
		list = append(list, c)
		return nil
	}, `SELECT sum, doc FROM cleans WHERE machine = ? ORDER BY n DESC LIMIT ?`, string(id), unlimited(limit))
	return list, err
}

// PutDuration remembers how long something took, for estimates. Only
// administrators and Muster itself may. Less than nothing is not kept.
func (tx *Tx) PutDuration(kind, class, image string, d time.Duration) error {
	if err := tx.s.usable(true); err != nil {
		return err
	}
	if err := authorize(tx.who, write, record{kind: "history"}, muster.Errorf(muster.ENotFound, "there is no history of %q", kind)); err != nil {
		return err
	}
	if d < 0 { // the clock was set back meanwhile
		return nil
	}
	if _, err := tx.s.exec(`INSERT INTO durations (owner, project, kind, class, image, took, at) VALUES ('system', '', ?, ?, ?, ?, ?)`,
		kind, class, image, int64(d), nanos(tx.now())); err != nil {
		return err
	}
	rev := tx.s.nextRev()
	tx.s.changed(rev, entry[measure]{rev, measure{durationKey{kind, class, image}, d}})
	if rand.IntN(pruneOneIn) != 0 {
		return nil
	}
	_, err := tx.s.exec(`DELETE FROM durations WHERE kind = ? AND class = ? AND image = ? AND n <=
		(SELECT n FROM durations WHERE kind = ? AND class = ? AND image = ? ORDER BY n DESC LIMIT 1 OFFSET ?)`,
		kind, class, image, kind, class, image, kept)
	return err
}

// Durations returns how long something took lately, newest first. An empty
// class or image stands for any.
func (tx *Tx) Durations(kind, class, image string, limit int) ([]time.Duration, error) {
	if err := authorize(tx.who, read, record{kind: "history"}, muster.Errorf(muster.ENotFound, "there is no history of %q", kind)); err != nil {
		return nil, err
	}
	if limit > 0 && limit <= mostDurations {
		list, err := tx.lastDurations(durationKey{kind, class, image})
		return slices.Clone(list[:min(limit, len(list))]), err
	}
	return tx.readDurations(durationKey{kind, class, image}, limit)
}

func (tx *Tx) readDurations(k durationKey, limit int) ([]time.Duration, error) {
	w := (&where{cond: "kind = ?", args: []any{k.kind}}).is("class", k.class).is("image", k.image).by("n DESC", limit)
	var list []time.Duration
	err := tx.s.each(func(r *sql.Rows) error {
		var d int64
		err := r.Scan(&d)
		list = append(list, time.Duration(d))
		return err
	}, `SELECT took FROM durations WHERE `+w.cond, w.args...)
	return list, err
}

func unlimited(n int) int {
	if n <= 0 {
		return -1 // SQLite's word for all
	}
	return n
}
