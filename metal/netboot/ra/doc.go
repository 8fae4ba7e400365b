// Package ra answers the router solicitations of machines that boot. iPXE waits
// some 15 seconds for an IPv6 router before it goes on; one advertisement, which
// says that there is no router and no DHCPv6, ends the wait. Nothing on the
// network gets a route by it.
package ra
