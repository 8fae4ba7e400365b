package boot

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// maxStageFile is more than the stages of any boot.
const maxStageFile = 16 << 10

// Timed reads the stages that were timed before the agent's service started, from
// its folder in /run. They are turned into times of day only now, when the clock is
// right. A machine that was not booted by this package has none.
func Timed(dir string) []muster.Stage {
	f, err := os.Open(filepath.Join(dir, StageFile))
	if err != nil {
		return nil
	}
	defer f.Close()
	return readStages(f, time.Now().Add(-uptime()))
}

// readStages reads stages; began is when the kernel's clock did.
func readStages(r io.Reader, began time.Time) []muster.Stage {
	b, err := io.ReadAll(io.LimitReader(r, maxStageFile+1))
	var list []wire.BootStage
	if err != nil || len(b) > maxStageFile || json.Unmarshal(b, &list) != nil {
		return nil
	}
	var out []muster.Stage
	for _, s := range list {
		if s.Name == "" || len(s.Name) > 64 || s.After < 0 || time.Duration(s.After) > 24*time.Hour || len(out) >= 32 {
			continue
		}
		out = append(out, muster.Stage{Name: s.Name, At: began.Add(time.Duration(s.After)).UTC()})
	}
	return out
}

// IsModprobe reports whether the kernel started this program because it wants a
// driver.
func IsModprobe(args []string) bool { return len(args) > 1 && filepath.Base(args[0]) == "modprobe" }
