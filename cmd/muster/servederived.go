package main

import (
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/spec"
	"github.com/muster-hpc/muster/storage/image"
	"github.com/spf13/pflag"
)

// derivedFlags say how long images stay that requests with packages brought about.
type derivedFlags struct {
	unused string
	most   int
	each   int
}

func (f *derivedFlags) add(set *pflag.FlagSet) {
	set.StringVar(&f.unused, "derived-images-ttl", "14d", "how long to keep unused images with added packages")
	set.IntVar(&f.most, "derived-images-max", image.DefaultKeep().Most, "maximum number of unused images with added packages; the most recently used ones are kept")
	set.IntVar(&f.each, "derived-images-per-project", image.DefaultKeep().PerProject, "maximum number of images with added packages per project; unused ones are removed first")
}

func (f *derivedFlags) read() (image.Keep, error) {
	d, err := spec.ParseDuration(f.unused)
	if err != nil || d < time.Hour {
		return image.Keep{}, muster.Errorf(muster.EInvalid, "--derived-images-ttl %s is not a time of an hour or more", f.unused).Because(muster.ReasonBadValue).WithHint("write it like 14d or 12h")
	}
	if f.most < 1 {
		return image.Keep{}, muster.Errorf(muster.EInvalid, "--derived-images-max cannot be %d", f.most).Because(muster.ReasonOutOfRange).WithHint("write 1 or more; --derived-images-ttl 1h removes them soon")
	}
	if f.each < 1 {
		return image.Keep{}, muster.Errorf(muster.EInvalid, "--derived-images-per-project cannot be %d", f.each).Because(muster.ReasonOutOfRange).WithHint("write 1 or more")
	}
	return image.Keep{For: d, Most: f.most, PerProject: f.each}, nil
}
