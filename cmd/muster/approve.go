package main

import (
	"os"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal/enrollment"
)

// approvalRules reads the rules by which bare machines are taken in; "": there are none.
func approvalRules(path string) (enrollment.Rules, error) {
	if path == "" {
		return nil, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, muster.Errorf(muster.EInvalid, "--approval-rules %s cannot be read", path).Because(muster.ReasonFileUnreadable).WithHint("see whether it is there, and the server may read it").Wrap(err)
	}
	return enrollment.Decode(path, data, os.ReadFile)
}
