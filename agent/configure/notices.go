package configure

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/cleantext"
	"github.com/muster-hpc/muster/wire"
)

// motdFile is shown at login: which cluster this is, when it ends, and what its
// people were last told.
const motdFile = "/etc/motd.d/20-muster"

// Where a node keeps what its agent found and people should know. Beside the
// scheduler's state it outlives the head's machine: which jobs were lost with
// one head is still true when the next one is lost, too.
const (
	remarksFile     = "/run/muster/remarks"
	headRemarksFile = slurmState + "/muster-remarks"
)

// motdNotices is how many of the last notices are shown at login.
const motdNotices = 3

// Remarks are shown for a week, whatever comes after them. More than these are
// too many to read.
const (
	remarkTime  = 7 * 24 * time.Hour
	mostRemarks = 20
)

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
	c.telling.Lock()
	defer c.telling.Unlock()
	_, err := c.files.write(motdFile, motd(cfg, c.remarks()), 0o644, "")
	return err
}

// remark tells everybody on this node what its agent found, now and at login,
// for a week.
func (c *Configurer) remark(cfg *wire.NodeConfig, text string) {
	n := muster.Notice{At: c.clock.Now(), Text: text}
	c.wall(notice(cfg, n))
	c.telling.Lock()
	defer c.telling.Unlock()
	file, owner := remarksFile, ""
	if cfg.Head && cfg.Slurm != nil {
		file, owner = headRemarksFile, "slurm"
	}
	lines := append(c.remarksIn(file), noticeLine(n))
	lines = lines[max(0, len(lines)-mostRemarks):]
	_, err := c.files.write(file, strings.Join(lines, "\n")+"\n", 0o600, owner)
	if err == nil {
		_, err = c.files.write(motdFile, motd(cfg, c.remarks()), 0o644, "")
	}
	if err != nil {
		c.log.Warn("updating message of the day failed", "error", err)
	}
}

// remarks are those whose time has not passed, oldest first.
func (c *Configurer) remarks() []string {
	lines := append(c.remarksIn(headRemarksFile), c.remarksIn(remarksFile)...)
	slices.SortStableFunc(lines, func(a, b string) int { return cmp.Compare(a[:len(momentForm)], b[:len(momentForm)]) })
	return lines[max(0, len(lines)-mostRemarks):]
}

// remarksIn reads a file: lines that begin with a moment.
func (c *Configurer) remarksIn(file string) []string {
	text, err := c.files.read(file)
	if err != nil {
		return nil
	}
	var out []string
	for line := range strings.Lines(text) {
		line = oneLine(strings.TrimSuffix(line, "\n"))
		if len(line) < len(momentForm) {
			continue
		}
		at, err := time.Parse(momentForm, line[:len(momentForm)])
		if err == nil && c.clock.Now().Sub(at) < remarkTime {
			out = append(out, line)
		}
	}
	return out
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

// momentForm is how moment writes.
const momentForm = "2006-01-02 15:04 UTC"

// moment is a time as people in the cluster read it.
func moment(t time.Time) string { return t.UTC().Format(momentForm) }

// oneLine keeps a text on its line, and terminals as they are.
func oneLine(s string) string { return cleantext.Line(s) }

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
