package muster

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"
)

// Program runs unchanged on clusters, as a black box whose figure is kept. It belongs to a
// project, or to Muster itself.
type Program struct {
	Name string `json:"name"`
	// Project and Owner, who added it, are empty where Builtin is set.
	Project string    `json:"project,omitempty"`
	Owner   string    `json:"owner,omitempty"`
	Created time.Time `json:"created,omitzero"`
	// Builtin programs are in the images that come with Muster.
	Builtin bool `json:"builtin,omitempty"`
	ProgramSpec
}

// ProgramSpec is what of a program decides what it does, and what is read from its output.
type ProgramSpec struct {
	// Image is the name of the image that it runs in. Empty for built-in programs, which run
	// in any that has them.
	Image string `json:"image,omitempty"`
	// Build and Run are commands for a shell, with placeholders such as {ranks}.
	Build string `json:"build,omitempty"`
	Run   string `json:"run"`
	// Check is a pattern (RE2) that must match in the output. Empty: nothing is looked for.
	Check string `json:"check,omitempty"`
	// Metric is the program's own figure. Nil: it has none.
	Metric *ProgramMetric `json:"metric,omitempty"`
	// Inputs are the names of volumes that it reads.
	Inputs []string `json:"inputs,omitempty"`
}

// ProgramMetric is a figure that a program prints.
type ProgramMetric struct {
	Name string `json:"name"`
	Unit string `json:"unit"`
	// Pattern (RE2) has one group, which is a number. The last match counts.
	Pattern string `json:"pattern"`
	Better  Better `json:"better"`
}

// Better is which of two figures is better.
type Better string

// Directions of figures.
const (
	BetterHigher Better = "higher"
	BetterLower  Better = "lower"
)

// Version of what a program does: figures of two versions are not of one thing. It is a
// SHA-256, in hex, over commands, image, inputs and arguments. Class and ranks are factors of
// a run. What is read from the output is not in it: that does not change what ran.
func (s ProgramSpec) Version(args []string) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q", s.Run, s.Build, s.Image) // quoted: where one ends is clear
	for _, list := range [][]string{s.Inputs, args} {
		fmt.Fprintf(h, " %d", len(list))
		for _, w := range list {
			fmt.Fprintf(h, " %q", w)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}
