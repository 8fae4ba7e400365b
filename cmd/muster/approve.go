package main

import (
	"os"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/approval"
)

// approvalRules reads the rules by which bare machines are taken in; "": there are none.
func approvalRules(path string) (approval.Rules, error) {
	if path == "" {
		return nil, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, muster.Errorf(muster.EInvalid, "--approve %s cannot be read", path).Because(muster.ReasonFileUnreadable).WithHint("see whether it is there, and the server may read it").Wrap(err)
	}
	return approval.Decode(path, data, os.ReadFile)
}
