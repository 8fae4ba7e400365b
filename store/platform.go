package store

import "github.com/muster-hpc/muster"

func platformObject() object[muster.Platform] {
	return object[muster.Platform]{
		kind: "platform", audit: muster.AuditPlatform, doc: platformDoc,
		of: func(p *muster.Platform) key {
			return key{id: p.Project + "/" + p.Name, owner: p.Owner, project: p.Project, name: p.Name}
		},
		absent: func(ref string) *muster.Error { return noObject("platform", ref, "muster platform list") },
	}
}

// Platforms are those that the actor may see, by project and name.
func (tx *Tx) Platforms() ([]muster.Platform, error) { return listObjects(tx, platformObject(), "1") }

// Platform returns one of a project.
func (tx *Tx) Platform(project, name string) (muster.Platform, error) {
	return getObject(tx, platformObject(), project+"/"+name)
}

// PutPlatform keeps a platform. The owner, who is in its project, may, and the project's managers.
func (tx *Tx) PutPlatform(p muster.Platform, text string) error {
	return putObject(tx, platformObject(), p, text)
}

// DeletePlatform deletes one. EForbidden: the actor may only see it.
func (tx *Tx) DeletePlatform(project, name, text string) error {
	return dropObject(tx, platformObject(), project+"/"+name, text)
}
