// Package page writes a performance certificate as one HTML file for people: the
// verdict and what was found in words, then pictures, then every figure with what it
// means. The file needs nothing from outside and no scripts, in a browser and on
// paper.
//
// It is pure: it knows certificates, and neither servers nor files. Whatever a
// certificate says is text on the page, never markup.
package page
