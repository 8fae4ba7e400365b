// Package measure has clusters measured. It takes the measurements that the records
// of clusters want, has the launches of each made by an agent one after the
// other, keeps what they printed, has package analysis judge it, and files what
// follows as signed certificates.
//
// The record of a cluster says which launch comes next, and the seed in it what
// that launch is: a server that comes back goes on where the last one was.
package measure
