package main

import (
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/storage/image"
	"github.com/spf13/pflag"
)

func TestVersionFlags(t *testing.T) {
	t.Parallel()
	var f versionFlags
	f.add(pflag.NewFlagSet("serve", pflag.ContinueOnError))
	if k, err := f.read(); err != nil || k != image.DefaultKeepVersions() {
		t.Errorf("by default %+v, %v", k, err)
	}
	for f, want := range map[versionFlags]image.KeepVersions{
		{3, "2w"}: {Newest: 3, For: 14 * 24 * time.Hour},
		{1, "0"}:  {Newest: 1, For: -1},
	} {
		if k, err := f.read(); err != nil || k != want {
			t.Errorf("%+v: %+v, %v", f, k, err)
		}
	}
	for _, bad := range []versionFlags{{0, "2w"}, {-1, "2w"}, {3, "soon"}, {3, "5m"}, {3, ""}} {
		if _, err := bad.read(); muster.CodeOf(err) != muster.EInvalid {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}
