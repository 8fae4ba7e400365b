package main

import (
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/image"
	"github.com/muster-hpc/muster/spec"
	"github.com/spf13/pflag"
)

// derivedFlags say how long images stay that requests with packages brought about.
type derivedFlags struct {
	unused string
	most   int
	each   int
}

func (f *derivedFlags) add(set *pflag.FlagSet) {
	set.StringVar(&f.unused, "derived-unused", "14d", "how long an image with added packages is kept that no cluster uses")
	set.IntVar(&f.most, "derived-most", image.DefaultKeep().Most, "how many images with added packages are kept that no cluster uses, those used last")
	set.IntVar(&f.each, "derived-per-project", image.DefaultKeep().PerProject, "how many images with added packages a project has, used or not; its unused ones make room")
}

func (f *derivedFlags) read() (image.Keep, error) {
	d, err := spec.ParseDuration(f.unused)
	if err != nil || d < time.Hour {
		return image.Keep{}, muster.Errorf(muster.EInvalid, "--derived-unused %s is not a time of an hour or more", f.unused).Because(muster.ReasonBadValue).WithHint("write it like 14d or 12h")
	}
	if f.most < 1 {
		return image.Keep{}, muster.Errorf(muster.EInvalid, "--derived-most cannot be %d", f.most).Because(muster.ReasonOutOfRange).WithHint("write 1 or more; --derived-unused 1h removes them soon")
	}
	if f.each < 1 {
		return image.Keep{}, muster.Errorf(muster.EInvalid, "--derived-per-project cannot be %d", f.each).Because(muster.ReasonOutOfRange).WithHint("write 1 or more")
	}
	return image.Keep{For: d, Most: f.most, PerProject: f.each}, nil
}
