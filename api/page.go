package api

import "github.com/muster-hpc/muster/wire"

// Page are the parameters of every list. They are exported because the framework skips
// others.
type Page struct {
	Limit int    `query:"limit" minimum:"0" maximum:"10000" doc:"At most so many; 0 means 1000"`
	After string `query:"after" maxLength:"256" doc:"Go on after this: next of the page before"`
}

func (p Page) page() wire.Page { return wire.Page{Limit: p.Limit, After: p.After} }
