// Package limit says whether a request keeps within the limits and rights of its project and
// of its owner. It is pure: what is in use is computed from the records of clusters.
package limit
