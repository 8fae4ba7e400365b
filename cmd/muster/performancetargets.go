package main

import (
	"os"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/measure/analysis"
)

// readPromises reads the file of --performance-targets; "" is none.
func readPromises(path string) (analysis.Targets, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, muster.Errorf(muster.EInvalid, "the performance targets cannot be read: %v", err).Because(muster.ReasonFileUnreadable).WithHint("name a file that --performance-targets can read, or leave it out")
	}
	return analysis.ParseTargets(string(text))
}
