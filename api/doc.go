// Package api is the server side of the REST API: routes, authentication,
// limits, OpenAPI 3.1 and event streams. What the routes do is behind Service,
// which package control implements; here is only what HTTP needs.
//
// Over the Unix socket the caller is known by the credentials of its process:
// user 0, or the user that runs the server, is the administrator. Over TLS a
// bearer token says who calls. A token works over the socket too, and then
// counts more than the process.
package api
