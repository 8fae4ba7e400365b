// Package link is the agent's side of the connection to the server: HTTPS with
// TLS 1.3, trusting one authority and nothing else, without proxies, redirects
// or compression, and with a limit on the size of every answer.
package link
