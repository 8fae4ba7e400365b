package configure

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// motdFile is shown at login: which cluster this is, when it ends, and what its
// people were last told.
const motdFile = "/etc/motd.d/20-muster"

// remarksFile keeps what the agent of this node found and people should know.
const remarksFile = "/run/muster/remarks"

// motdNotices is how many of the last notices, and of the last remarks, are
// shown at login.
const motdNotices = 3

// notices tells everybody who is logged in what is new, once, and keeps it for
// those who come later. On a node that has just booted nobody is logged in.
func (c *Configurer) notices(cfg *wire.NodeConfig, had memory) error {
	if had.Generation > 0 {
		for _, n := range cfg.Notices {
			if n.ID > had.Notice {
				c.wall(notice(cfg, n))
			}
		}
	}
	_, err := c.files.write(motdFile, motd(cfg, c.remarks()), 0o644, "")
	return err
}

// remark tells everybody on this node what its agent found, now and at login,
// as long as the node lives.
func (c *Configurer) remark(cfg *wire.NodeConfig, text string) {
	n := muster.Notice{At: c.clock.Now(), Text: text}
	lines := append(c.remarks(), noticeLine(n))
	lines = lines[max(0, len(lines)-motdNotices):]
	_, err := c.files.write(remarksFile, strings.Join(lines, "\n")+"\n", 0o644, "")
	if err == nil {
		_, err = c.files.write(motdFile, motd(cfg, lines), 0o644, "")
	}
	if err != nil {
		c.log.Warn("the message of the day is as it was", "err", err)
	}
	c.wall(notice(cfg, n))
}

func (c *Configurer) remarks() []string {
	text, err := c.files.read(remarksFile)
	if err != nil || text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// notice is what appears on a terminal.
func notice(cfg *wire.NodeConfig, n muster.Notice) string {
	return fmt.Sprintf("\r\n\a*** cluster %s, %s ***\r\n%s\r\n\r\n", oneLine(cfg.ClusterName), moment(n.At), oneLine(n.Text))
}

func motd(cfg *wire.NodeConfig, remarks []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Cluster %s (%s), node %s.\n", oneLine(cfg.ClusterName), cfg.Cluster, cfg.Node)
	if !cfg.Expires.IsZero() {
		fmt.Fprintf(&b, "It ends %s; `muster extend %s 1h` outside of it asks for more time.\n", moment(cfg.Expires), oneLine(cfg.ClusterName))
	}
	for _, n := range cfg.Notices[max(0, len(cfg.Notices)-motdNotices):] {
		b.WriteString(noticeLine(n) + "\n")
	}
	for _, r := range remarks {
		b.WriteString(r + "\n")
	}
	return b.String()
}

func noticeLine(n muster.Notice) string { return moment(n.At) + "  " + oneLine(n.Text) }

// moment is a time as people in the cluster read it.
func moment(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

// oneLine keeps a text on its line, and terminals as they are.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, ""))
}

// wall writes to every terminal. The program of that name looks into a list of
// sessions that nothing keeps here. A terminal that is stopped misses it.
func (c *Configurer) wall(text string) {
	dir := c.files.at("/dev/pts")
	list, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, d := range list {
		if _, err := strconv.Atoi(d.Name()); err != nil {
			continue
		}
		f, err := os.OpenFile(filepath.Join(dir, d.Name()), os.O_WRONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_NOFOLLOW, 0)
		if err != nil {
			continue
		}
		_ = f.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
		_, _ = f.WriteString(text)
		_ = f.Close()
	}
}

// lastNotice is the newest that a configuration holds.
func lastNotice(cfg *wire.NodeConfig) (id int64) {
	for _, n := range cfg.Notices {
		id = max(id, n.ID)
	}
	return id
}
