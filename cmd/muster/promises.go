package main

import (
	"os"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/validate"
)

// readPromises reads the file of --promises; "" is none.
func readPromises(path string) (validate.Promises, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, muster.Errorf(muster.EInvalid, "the promises cannot be read: %v", err).Because(muster.ReasonFileUnreadable).WithHint("name a file that --promises can read, or leave it out")
	}
	return validate.ParsePromises(string(text))
}
