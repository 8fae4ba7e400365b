package volume

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Strays lists directories of Host that no living volume has. Nobody erases them.
func (k *Manager) Strays(ctx context.Context) ([]string, error) {
	if k.Host == nil {
		return nil, nil
	}
	// What is on disk is listed first: a volume made meanwhile is on record.
	list, err := k.Host.Entries()
	if err != nil || len(list) == 0 {
		return nil, err
	}
	living, err := k.Records.Volumes(ctx, Query{Phases: []muster.VolumePhase{muster.VolumeReady, muster.VolumeRetained, muster.VolumeDeleting}})
	known := make(map[muster.VolumeID]bool, len(living))
	for _, v := range living {
		known[v.ID] = true
	}
	return slices.DeleteFunc(list, func(at string) bool { return known[muster.VolumeID(filepath.Base(at))] }), err
}

// LogStrays logs each stray.
func (k *Manager) LogStrays(ctx context.Context) {
	strays, err := k.Strays(ctx)
	if err != nil {
		k.Log.Warn("listing volume directories failed", "error", err)
	}
	for _, at := range strays {
		k.Log.Warn("unknown volume directory", "path", at)
	}
}

// Health tells the health page what cannot be erased, and what lies beside the volumes
// without a record.
func (k *Manager) Health(ctx context.Context) wire.HealthPart {
	part := wire.HealthPart{Name: "volumes", OK: true}
	// Anybody may read this page: which and where is in the log.
	if n := len(k.Failing()); n > 0 {
		part.OK, part.Text = false, fmt.Sprintf("%d cannot be erased, and are tried again: see the server's log", n)
	}
	if strays, err := k.Strays(ctx); err != nil {
		part.OK, part.Text = false, "the directories of volumes cannot be listed"
	} else if len(strays) > 0 && part.OK {
		part.Text = fmt.Sprintf("%d directories belong to no volume on record and are left alone: see the server's log", len(strays))
	}
	return part
}
