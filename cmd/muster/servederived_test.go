package main

import (
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/storage/image"
	"github.com/spf13/pflag"
)

func TestDerivedFlags(t *testing.T) {
	t.Parallel()
	var f derivedFlags
	f.add(pflag.NewFlagSet("serve", pflag.ContinueOnError))
	if k, err := f.read(); err != nil || k != image.DefaultKeep() {
		t.Errorf("by default %+v, %v", k, err)
	}
	f = derivedFlags{unused: "3d", most: 5, each: 2}
	if k, err := f.read(); err != nil || k.For != 72*time.Hour || k.Most != 5 || k.PerProject != 2 {
		t.Errorf("%+v, %v", k, err)
	}
	for _, bad := range []derivedFlags{{"soon", 5, 2}, {"5m", 5, 2}, {"0", 5, 2}, {"3d", 0, 2}, {"3d", -1, 2}, {"3d", 5, 0}} {
		if _, err := bad.read(); muster.CodeOf(err) != muster.EInvalid {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}
