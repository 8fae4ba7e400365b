// Package client is the Go client of the Muster API. It speaks to a server
// over a Unix socket or over HTTPS with a bearer token, turns error replies
// into *muster.Error, and resumes event streams where they broke.
//
//	c, err := client.New(client.Config{Server: "unix:/var/lib/muster/muster.sock"})
//	created, err := c.CreateCluster(ctx, client.Create{Body: text, Format: "yaml"})
//	err = c.Events(ctx, string(created.ID), 0, func(e wire.Event) error { ... })
package client
