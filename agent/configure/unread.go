package configure

import "github.com/muster-hpc/muster/wire"

// service is one that reads its files when it starts, and again when it is told to.
type service string

const (
	none       service = "" // the files are read each time they are needed
	sshService service = "ssh"
	munged     service = "munge"
	slurmctld  service = "slurmctld"
)

// unreadDir holds a mark for each service that has not read its newest files yet. A mark is made before
// a file is changed, and goes when the service has read it: an Apply that is overtaken by a newer
// configuration, fails or is killed in between leaves it to the next. It is on tmpfs, and dies with
// the boot, as services do.
const unreadDir = "/run/muster/unread/"

func (c *Configurer) unread(s service) bool { return c.files.exists(unreadDir + string(s)) }

// hasRead says that a service has read its files.
func (c *Configurer) hasRead(s service) error { return c.files.remove(unreadDir + string(s)) }

// writeFor writes a file that a service reads.
func (c *Configurer) writeFor(s service, f wire.File) error {
	if s != none {
		same, err := c.files.has(f.Path, f.Content, f.Mode, f.Owner)
		if err != nil || same {
			return err
		}
		if _, err := c.files.write(unreadDir+string(s), "", 0o644, ""); err != nil {
			return err
		}
	}
	_, err := c.files.write(f.Path, f.Content, f.Mode, f.Owner)
	return err
}
