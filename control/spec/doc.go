// Package spec reads request files. XML, YAML and JSON decode to one located
// tree; one decoder fills wire.Request from it; one validation makes a
// muster.Spec. Every problem is reported at once, with its field, its place in
// the text and what to write instead.
package spec
