// Package nfs serves directories of this host over NFSv4.1 to machines that do
// not share its kernel. The server is nfs-ganesha, a program of its own beside
// Muster: it goes on while Muster is restarted or killed, and Muster finds it again.
// Exports know which machines each cluster has, and open its volumes to them alone. A
// cluster that can be saved has a server of its own, which is held while its machines
// stand still, so that they keep their locks of files.
//
// Root of a node can make up whatever it sends. What holds then: an export is there
// only for the addresses that it names, for them alone and from a port that only
// root may use; and a file handle, also one that was guessed, leads to nothing but
// the file system of an export that the address has. So a file system is exported
// only if it holds nothing but what its clients may have, which Set demands.
package nfs
