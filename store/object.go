package store

import (
	"database/sql"
	"errors"
	"fmt"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/document"
)

// object is a kind of record of which there are few. They share a table.
type object[T any] struct {
	kind  string // as in authorize
	audit muster.AuditKind
	doc   document.Kind[T]
	// of is what a record is found by, and whose it is.
	of     func(*T) key
	absent func(ref string) *muster.Error
}

// key is what a record is found by: its ID, and its name within a project.
type key struct{ id, owner, project, name string }

func (k key) record(kind string) record {
	return record{kind: kind, owner: k.owner, project: k.project}
}

// putObject adds a record or changes it; text is what the audit says.
func putObject[T any](tx *Tx, o object[T], v T, text string) error {
	if err := tx.s.usable(true); err != nil {
		return err
	}
	k := o.of(&v)
	if err := authorize(tx.who, write, k.record(o.kind), o.absent(k.name)); err != nil {
		return err
	}
	if err := checkText(k.id, k.owner, k.project, k.name); err != nil {
		return err
	}
	var other string
	switch err := tx.s.one([]any{&other}, `SELECT id FROM objects WHERE kind = ? AND project = ? AND name = ? AND id <> ?`, o.kind, k.project, k.name, k.id); {
	case err == nil:
		return muster.Errorf(muster.EConflict, "there is another %s named %s", o.kind, k.name).Because(muster.ReasonNameTaken).WithHint("choose another name")
	case !errors.Is(err, errNoRow):
		return err
	}
	doc, sum, err := encode(o.doc, &v)
	if err != nil {
		return err
	}
	if _, err := tx.s.exec(`INSERT INTO objects (kind, id, owner, project, name, sum, doc) VALUES (?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (kind, id) DO UPDATE SET owner = excluded.owner, project = excluded.project, name = excluded.name, sum = excluded.sum, doc = excluded.doc`,
		o.kind, k.id, k.owner, k.project, k.name, sum, doc); err != nil {
		return err
	}
	if text == "" {
		return nil
	}
	return tx.log(muster.Audit{Owner: k.owner, Project: k.project, Kind: o.audit, Object: k.name, To: muster.AuditPresent, Text: text})
}

// dropObject deletes a record.
func dropObject[T any](tx *Tx, o object[T], id, text string) error {
	if err := tx.s.usable(true); err != nil {
		return err
	}
	v, err := getObject(tx, o, id)
	if err != nil {
		return err
	}
	k := o.of(&v)
	if err := authorize(tx.who, write, k.record(o.kind), o.absent(id)); err != nil {
		return err
	}
	if _, err := tx.s.exec(`DELETE FROM objects WHERE kind = ? AND id = ?`, o.kind, id); err != nil {
		return err
	}
	return tx.log(muster.Audit{Owner: k.owner, Project: k.project, Kind: o.audit, Object: k.name, From: muster.AuditPresent, To: muster.AuditDeleted, Text: text})
}

// getObject finds a record by its ID.
func getObject[T any](tx *Tx, o object[T], id string) (v T, err error) {
	list, err := listObjects(tx, o, `id = ?`, id)
	if err != nil {
		return v, err
	}
	if len(list) == 0 {
		return v, o.absent(id)
	}
	return list[0], nil
}

// listObjects lists the records that the actor may see, by their names.
func listObjects[T any](tx *Tx, o object[T], cond string, args ...any) ([]T, error) {
	var out []T
	err := tx.s.each(func(r *sql.Rows) error {
		var k key
		var doc string
		var sum int64
		if err := r.Scan(&k.id, &k.owner, &k.project, &k.name, &sum, &doc); err != nil {
			return err
		}
		if !allowed(tx.who, read, k.record(o.kind)) {
			return nil
		}
		v, err := decode(o.doc, o.kind+" "+k.name, doc, sum)
		if err != nil {
			return err
		}
		if o.of(&v) != k {
			return corrupt(o.kind+" "+k.name, errors.New("its columns say something else than its document"))
		}
		out = append(out, v)
		return nil
	}, `SELECT id, owner, project, name, sum, doc FROM objects WHERE kind = ? AND `+cond+` ORDER BY project, name`, append([]any{o.kind}, args...)...)
	return out, err
}

func noObject(kind, ref, list string) *muster.Error {
	return muster.Errorf(muster.ENotFound, "there is no %s %.64q", kind, ref).Because(muster.ReasonNoSuchObject).WithHint("`%s` lists them", list)
}

func maintenanceObject() object[muster.MaintenanceWindow] {
	return object[muster.MaintenanceWindow]{
		kind: "maintenance", audit: muster.AuditMaintenance, doc: maintenanceDoc,
		of:     func(w *muster.MaintenanceWindow) key { return key{id: w.ID, owner: "system", name: w.ID} },
		absent: func(ref string) *muster.Error { return noObject("maintenance window", ref, "muster maintenance list") },
	}
}

// MaintenanceWindows are those that are entered, by ID.
func (tx *Tx) MaintenanceWindows() ([]muster.MaintenanceWindow, error) {
	return listObjects(tx, maintenanceObject(), "1")
}

// PutMaintenanceWindow enters a window or changes it. Only administrators may.
func (tx *Tx) PutMaintenanceWindow(w muster.MaintenanceWindow, text string) error {
	return putObject(tx, maintenanceObject(), w, text)
}

// DeleteMaintenanceWindow takes a window out.
func (tx *Tx) DeleteMaintenanceWindow(id, text string) error {
	return dropObject(tx, maintenanceObject(), id, text)
}

func siteTreeObject() object[muster.SiteTree] {
	return object[muster.SiteTree]{
		kind: "topology", audit: muster.AuditTopology, doc: siteTreeDoc,
		of:     func(*muster.SiteTree) key { return key{id: "site", owner: "system", name: "site"} },
		absent: func(ref string) *muster.Error { return noObject("topology", ref, "muster topology show") },
	}
}

// SiteTree is where machines stand as an administrator described it; nil: nobody did.
func (tx *Tx) SiteTree() (*muster.SiteTree, error) {
	list, err := listObjects(tx, siteTreeObject(), "1")
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return &list[0], nil
}

// PutSiteTree replaces the description. Only administrators may.
func (tx *Tx) PutSiteTree(t muster.SiteTree, text string) error {
	return putObject(tx, siteTreeObject(), t, text)
}

// DeleteSiteTree forgets the description: registrations alone count then. ENotFound: there is
// none.
func (tx *Tx) DeleteSiteTree(text string) error {
	return dropObject(tx, siteTreeObject(), "site", text)
}

func projectObject() object[muster.Project] {
	return object[muster.Project]{
		kind: "project", audit: muster.AuditProject, doc: projectDoc,
		of:     func(p *muster.Project) key { return key{id: p.Name, owner: "system", project: p.Name, name: p.Name} },
		absent: func(ref string) *muster.Error { return noObject("project", ref, "muster project list") },
	}
}

// Projects are those that have a record, by name.
func (tx *Tx) Projects() ([]muster.Project, error) { return listObjects(tx, projectObject(), "1") }

// Project returns one. ENotFound: it has no record.
func (tx *Tx) Project(name string) (muster.Project, error) {
	return getObject(tx, projectObject(), name)
}

// PutProject adds a project or changes it.
func (tx *Tx) PutProject(p muster.Project, text string) error {
	return putObject(tx, projectObject(), p, text)
}

func courseObject() object[muster.Course] {
	return object[muster.Course]{
		kind: "course", audit: muster.AuditCourse, doc: courseDoc,
		of: func(c *muster.Course) key {
			return key{id: c.ID, owner: c.Teacher, project: c.Project, name: c.Name}
		},
		absent: func(ref string) *muster.Error { return noObject("course", ref, "muster book list") },
	}
}

// Courses are those that the actor may see, by project and name.
func (tx *Tx) Courses() ([]muster.Course, error) { return listObjects(tx, courseObject(), "1") }

// Course returns one by its ID.
func (tx *Tx) Course(id string) (muster.Course, error) { return getObject(tx, courseObject(), id) }

// PutCourse adds a course or changes it.
func (tx *Tx) PutCourse(c muster.Course, text string) error {
	return putObject(tx, courseObject(), c, text)
}

// DeleteCourse deletes one.
func (tx *Tx) DeleteCourse(id, text string) error { return dropObject(tx, courseObject(), id, text) }

func templateObject() object[muster.Template] {
	return object[muster.Template]{
		kind: "template", audit: muster.AuditTemplate, doc: templateDoc,
		of: func(t *muster.Template) key {
			return key{id: t.Project + "/" + t.Name, owner: t.Owner, project: t.Project, name: t.Name}
		},
		absent: func(ref string) *muster.Error { return noObject("template", ref, "muster template list") },
	}
}

// Templates are those that the actor may see, by project and name.
func (tx *Tx) Templates() ([]muster.Template, error) { return listObjects(tx, templateObject(), "1") }

// Template returns one of a project.
func (tx *Tx) Template(project, name string) (muster.Template, error) {
	return getObject(tx, templateObject(), project+"/"+name)
}

// PutTemplate keeps a template.
func (tx *Tx) PutTemplate(t muster.Template, text string) error {
	return putObject(tx, templateObject(), t, text)
}

// DeleteTemplate deletes one.
func (tx *Tx) DeleteTemplate(project, name, text string) error {
	return dropObject(tx, templateObject(), project+"/"+name, text)
}

// checkObject looks at a document of the table objects, whatever its kind.
func checkObject(what string, b []byte) error {
	var errs []error
	for _, check := range []func(string, []byte) error{maintenanceDoc.Check, projectDoc.Check, courseDoc.Check, templateDoc.Check, programDoc.Check, platformDoc.Check, siteTreeDoc.Check} {
		err := check(what, b)
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return fmt.Errorf("none of the kinds that are known: %w", errs[0])
}
