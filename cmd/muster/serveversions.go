package main

import (
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/spec"
	"github.com/muster-hpc/muster/storage/image"
	"github.com/spf13/pflag"
)

// versionFlags say which old contents of images stay.
type versionFlags struct {
	newest int
	age    string
}

func (f *versionFlags) add(set *pflag.FlagSet) {
	set.IntVar(&f.newest, "image-versions-min", image.DefaultKeepVersions().Newest, "number of newest contents of each image to keep, whatever their age")
	set.StringVar(&f.age, "image-versions-ttl", "180d", "how long to keep older contents of images that nobody uses and that are not pinned, since they were built; 0: only the newest")
}

func (f *versionFlags) read() (image.KeepVersions, error) {
	k := image.KeepVersions{Newest: f.newest, For: -1}
	if f.newest < 1 {
		return k, muster.Errorf(muster.EInvalid, "--image-versions-min cannot be %d", f.newest).Because(muster.ReasonOutOfRange).WithHint("write 1 or more")
	}
	if f.age == "0" {
		return k, nil
	}
	d, err := spec.ParseDuration(f.age)
	if err != nil || d < time.Hour {
		return k, muster.Errorf(muster.EInvalid, "--image-versions-ttl %s is not a time of an hour or more", f.age).Because(muster.ReasonBadValue).WithHint("write it like 180d or 52w, or 0")
	}
	k.For = d
	return k, nil
}
