package muster

import "time"

// Template is what a cluster was, to make others like it.
type Template struct {
	Name    string    `json:"name"`
	Project string    `json:"project"`
	Owner   string    `json:"owner"`
	Created time.Time `json:"created"`
	// From is the cluster that it was made of.
	From ClusterID `json:"from"`
	// Spec is the request, with the names of volumes in place of their IDs.
	Spec Spec `json:"spec"`
	// Image is the content that the cluster ran, as Spec names it by name. Of a template
	// with a root, Spec names it by its ID, too.
	Image ImageID `json:"image,omitempty"`
	// Root is what was kept of a node's root file system. Nil: nothing was.
	Root *SavedRoot `json:"root,omitempty"`
	// Saving is the saving of a root that goes on, or that failed. Nil: there is none.
	Saving *Saving `json:"saving,omitempty"`
}

// SavedRoot is how much a node's root file system differed from its image.
type SavedRoot struct {
	Node    string   `json:"node"`
	Written int      `json:"written"` // files, directories and links that are other ones, or new
	Removed int      `json:"removed"`
	Bytes   int64    `json:"bytes"` // in what was written
	Took    Duration `json:"took_seconds"`
}

// Saving is the saving of a node's root file system.
type Saving struct {
	ID    string    `json:"id"`
	Node  string    `json:"node"`
	By    string    `json:"by"`
	Began time.Time `json:"began"`
	// Error is why it failed. Nil: it goes on.
	Error *Error `json:"error,omitempty"`
}

// Usable reports whether clusters can be made of it, and not only once its root is saved.
func (t Template) Usable() bool { return t.Saving == nil || t.Image != "" }
