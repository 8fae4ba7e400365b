package configure

import (
	"slices"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/document"
	"github.com/muster-hpc/muster/wire"
)

// memoryFile keeps what was configured, across restarts of the agent. It dies
// with the node's file system, as does what it tells of.
const memoryFile = "/var/lib/muster/configured.json"

// memory is what an earlier Apply made on this node.
type memory struct {
	Generation int64          `json:"generation"`       // 0: nothing yet
	Users      map[string]int `json:"users"`            // name -> UID
	Notice     int64          `json:"notice,omitempty"` // the last that was told
	Mounts     []string       `json:"mounts,omitempty"` // targets, in order
	Ending     bool           `json:"ending,omitempty"` // the scheduler was told that the cluster ends, or is paused
}

const memoryDoc document.Kind[memory] = "configured/1"

// remember is what is there now: what was wanted, and what should have gone and did
// not, which is tried again.
func remember(cfg *wire.NodeConfig, had memory, failed Incomplete) memory {
	m := memory{Generation: max(1, cfg.Generation), Users: map[string]int{}, Notice: lastNotice(cfg), Mounts: mountTargets(cfg)}
	for _, u := range cfg.Users {
		m.Users[u.Name] = u.UID
	}
	if cfg.Slurm != nil {
		m.Ending = cfg.Slurm.Ending || cfg.Slurm.Pause != ""
	}
	for _, p := range failed.Parts {
		switch p.Name {
		case "people who left", "accounts":
			for name, uid := range had.Users {
				if _, ok := m.Users[name]; !ok {
					m.Users[name] = uid
				}
			}
		case "volumes":
			for _, target := range had.Mounts {
				if !slices.Contains(m.Mounts, target) {
					m.Mounts = append(m.Mounts, target)
				}
			}
		}
	}
	return m
}

// loadMemory gives the zero memory when there is none, or none that is
// readable: everything is then made again, which does no harm. One of another version is
// an error: who should have gone is named there.
func (c *Configurer) loadMemory() (memory, error) {
	text, err := c.files.read(memoryFile)
	if err != nil || text == "" {
		return memory{}, nil //nolint:nilerr // see above
	}
	m, err := memoryDoc.Decode(memoryFile, []byte(text))
	if muster.CodeOf(err) == muster.EConflict {
		return memory{}, err
	}
	return m, nil
}

func (c *Configurer) saveMemory(m memory) error {
	b, err := memoryDoc.Encode(&m)
	if err != nil {
		return err
	}
	_, err = c.files.write(memoryFile, string(b), 0o600, "")
	return err
}
