package configure

import (
	"os"
	"path"
	"strings"

	"github.com/muster-hpc/muster/wire"
)

// zoneInfo is where an image has the time zones; without the package tzdata it has none.
const zoneInfo = "/usr/share/zoneinfo/"

// timezone gives the node the site's zone, so that --begin=16:00 means what people think.
// One that the image does not know leaves the node as it is.
func (c *Configurer) timezone(cfg *wire.NodeConfig) error {
	if cfg.TimeZone == "" || path.Clean(cfg.TimeZone) != cfg.TimeZone || strings.HasPrefix(cfg.TimeZone, "/") || strings.HasPrefix(cfg.TimeZone, ".") {
		return nil
	}
	file := zoneInfo + cfg.TimeZone
	if !c.files.exists(file) {
		c.log.Warn("time zone unknown to this image", "zone", cfg.TimeZone)
		return nil
	}
	at := c.files.at("/etc/localtime")
	if to, err := os.Readlink(at); err != nil || to != file {
		fresh := at + ".muster"
		if err := os.Remove(fresh); err != nil && !os.IsNotExist(err) {
			return err
		}
		if err := os.Symlink(file, fresh); err != nil {
			return err
		}
		if err := os.Rename(fresh, at); err != nil {
			return err
		}
	}
	_, err := c.files.write("/etc/timezone", cfg.TimeZone+"\n", 0o644, "")
	return err
}
