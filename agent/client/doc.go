// Package client is the agent's side of the connection to the server: HTTPS with
// TLS 1.3, trusting one authority and nothing else, without proxies or
// redirects, and with a limit on the size of every answer, also of one that was
// compressed.
package client
