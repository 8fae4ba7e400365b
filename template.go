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
	// Image is the content that the cluster ran, as Spec names it by name.
	Image ImageID `json:"image,omitempty"`
}
