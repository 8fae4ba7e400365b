package wire

import "github.com/muster-hpc/muster"

// SaveRequest keeps what a cluster is as a template of its project.
type SaveRequest struct {
	Name    string `json:"name" doc:"Name of the template"`
	Replace bool   `json:"replace,omitempty" doc:"Take the place of one of that name"`
}

// Template is what a cluster was, as a request for others like it.
type Template struct {
	muster.Template
	Request Request `json:"request"`
}

// TemplateList is every template that the caller can see.
type TemplateList struct {
	Templates []Template `json:"templates"`
	More
}
