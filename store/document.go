package store

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"slices"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/document"
)

// The documents in the column doc of the tables.
const (
	clusterDoc      document.Kind[muster.Cluster]      = "cluster/1"
	nodeDoc         document.Kind[muster.Node]         = "node/1"
	machineDoc      document.Kind[muster.Machine]      = "machine/1"
	userDoc         document.Kind[muster.User]         = "user/1"
	volumeDoc       document.Kind[muster.Volume]       = "volume/1"
	cleanDoc        document.Kind[muster.CleanRecord]  = "clean/1"
	eventDoc        document.Kind[muster.MachineEvent] = "machine-event/1"
	hplDoc          document.Kind[muster.HPLResult]    = "hpl-result/1"
	registrationDoc document.Kind[muster.Registration] = "registration/1"

	maintenanceDoc document.Kind[muster.MaintenanceWindow] = "maintenance/1"
	projectDoc     document.Kind[muster.Project]           = "project/1"
	courseDoc      document.Kind[muster.Course]            = "course/1"
	templateDoc    document.Kind[muster.Template]          = "template/1"
	programDoc     document.Kind[muster.Program]           = "program/1"
	programRunDoc  document.Kind[muster.ProgramRun]        = "program-run/1"
	platformDoc    document.Kind[muster.Platform]          = "platform/1"
	siteTreeDoc    document.Kind[muster.SiteTree]          = "site-tree/1"

	experimentDoc       document.Kind[muster.Experiment]       = "experiment/1"
	experimentLaunchDoc document.Kind[muster.ExperimentLaunch] = "experiment-launch/1"
)

// documents reports how the documents of each table are looked at.
func documents() map[string]func(what string, b []byte) error {
	return map[string]func(string, []byte) error{
		"clusters": clusterDoc.Check, "nodes": nodeDoc.Check, "machines": machineDoc.Check, "users": userDoc.Check,
		"volumes": volumeDoc.Check, "cleans": cleanDoc.Check, "machine_events": eventDoc.Check, "hpl": hplDoc.Check,
		"registrations": registrationDoc.Check, "objects": checkObject, "program_runs": programRunDoc.Check,
		"experiments": experimentDoc.Check, "experiment_launches": experimentLaunchDoc.Check,
	}
}

// checkDocuments refuses a store whose records are of another version than this program
// reads, before anything is changed in it. The newest of each table is looked at: all
// of them are brought to another version at once, or none.
func checkDocuments(ctx context.Context, db *sql.DB, path string) error {
	all := documents()
	for _, table := range slices.Sorted(maps.Keys(all)) {
		var there int
		if err := db.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = ?`, table).Scan(&there); err != nil {
			return err
		}
		if there == 0 {
			continue
		}
		var doc []byte
		err := db.QueryRowContext(ctx, `SELECT doc FROM `+table+` ORDER BY rowid DESC LIMIT 1`).Scan(&doc)
		if errors.Is(err, sql.ErrNoRows) {
			continue
		}
		if err != nil {
			return err
		}
		var other *muster.Error
		if errors.As(all[table]("a record in the table "+table+" of "+path, doc), &other) {
			return other.WithHint("run the muster that wrote it, or start this one with another state directory; nothing was changed")
		}
	}
	return nil
}
