package wire

import (
	"time"

	"github.com/muster-hpc/muster"
)

// SaveRequest keeps what a cluster is as a template of its project.
type SaveRequest struct {
	Name    string `json:"name" doc:"Name of the template"`
	Replace bool   `json:"replace,omitempty" doc:"Take the place of one of that name"`
	Root    string `json:"root,omitempty" doc:"Node whose root file system is kept, too: its name, or head. Empty: no root is kept"`
}

// Template is what a cluster was, as a request for others like it.
type Template struct {
	muster.Template
	Request Request `json:"request"`
	// Progress is how far the saving of a root is.
	Progress *SaveProgress `json:"progress,omitempty"`
}

// SaveProgress is how far the saving of a root is.
type SaveProgress struct {
	Stage string `json:"stage"` // asked, receiving, packing
	Bytes int64  `json:"bytes"` // received
	Total int64  `json:"total_bytes,omitempty"`
	// ETA is when it should be done. Zero: nobody knows yet.
	ETA time.Time `json:"eta,omitzero"`
}

// TemplateList is every template that the caller can see.
type TemplateList struct {
	Templates []Template `json:"templates"`
	More
}
