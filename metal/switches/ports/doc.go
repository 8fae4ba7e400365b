// Package ports is what a site's switches do for its bare machines: it joins them to
// the network of a cluster, takes them out of it, cuts them off, and reports what is
// seen of them. It knows machines by where their registrations say that they are
// plugged in, and switches by their names there.
//
// Each interface of a machine has a use. The management port is in the network in
// which a machine meets the server and nobody else: isolated, and open but for a
// fence. The message ports are in their cluster's network, and closed when there is
// none.
package ports
