package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/muster-hpc/muster/api/client"
	"github.com/muster-hpc/muster/wire"
	"github.com/spf13/cobra"
)

// completion asks the server for names, for at most half a second: a shell
// waits for it.
func (a *app) completion(c *cobra.Command, ask func(context.Context, *client.Client) []string, typed string) ([]string, cobra.ShellCompDirective) {
	k, err := a.connect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	base := c.Context()
	if base == nil {
		base = context.Background()
	}
	ctx, cancel := context.WithTimeout(base, 500*time.Millisecond)
	defer cancel()
	var out []string
	for _, name := range ask(ctx, k) {
		if strings.HasPrefix(name, typed) {
			out = append(out, name)
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// completeClusters completes names of clusters, as the first most arguments
// (-1: all).
func (a *app) completeClusters(most int) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if most >= 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return a.completion(c, func(ctx context.Context, k *client.Client) []string {
			list, _ := k.Clusters(ctx, client.ClusterFilter{})
			var names []string
			for _, cluster := range list {
				names = append(names, cluster.Name)
			}
			return names
		}, typed)
	}
}

// completeNodes completes a cluster, then a node of it.
func (a *app) completeNodes(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	switch len(args) {
	case 0:
		return a.completeClusters(1)(c, args, typed)
	case 1:
		return a.nodeNames(c, args[0], typed)
	}
	return nil, cobra.ShellCompDirectiveDefault
}

func (a *app) nodeNames(c *cobra.Command, cluster, typed string) ([]string, cobra.ShellCompDirective) {
	return a.someNodes(c, cluster, typed, func(wire.Node) bool { return true })
}

// workers completes the nodes that may leave a cluster: all but its head.
func (a *app) workers(c *cobra.Command, cluster, typed string) ([]string, cobra.ShellCompDirective) {
	return a.someNodes(c, cluster, typed, func(n wire.Node) bool { return !n.Head })
}

func (a *app) someNodes(c *cobra.Command, cluster, typed string, suits func(wire.Node) bool) ([]string, cobra.ShellCompDirective) {
	return a.completion(c, func(ctx context.Context, k *client.Client) []string {
		show, _ := k.Cluster(ctx, cluster)
		var names []string
		for _, n := range show.Nodes {
			if suits(n) {
				names = append(names, n.Name)
			}
		}
		return names
	}, typed)
}

// completeImage completes one image.
func (a *app) completeImage(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.completeImages(c, args, typed)
}

// completeMachine completes one machine.
func (a *app) completeMachine(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.completeFacts(func(m wire.Machine) string { return string(m.ID) })(c, args, typed)
}

// completeFacts completes what some machine has.
func (a *app) completeFacts(word func(wire.Machine) string, also ...string) cobra.CompletionFunc {
	return func(c *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return a.completion(c, func(ctx context.Context, k *client.Client) []string {
			list, _ := k.Machines(ctx, true)
			words := slices.Clone(also)
			for _, m := range list {
				words = append(words, word(m))
			}
			slices.Sort(words)
			return slices.Compact(words)
		}, typed)
	}
}

// completeToken completes the ID of a token.
func (a *app) completeToken(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.completion(c, func(ctx context.Context, k *client.Client) []string {
		list, _ := k.Tokens(ctx, "")
		var ids []string
		for _, t := range list {
			ids = append(ids, t.ID)
		}
		return ids
	}, typed)
}

func (a *app) completeImages(c *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	return a.completion(c, func(ctx context.Context, k *client.Client) []string {
		list, _ := k.Images(ctx)
		if name, _, versioned := strings.Cut(typed, "@"); versioned {
			return versionWords(list, name)
		}
		var names []string
		for _, img := range list {
			if img.Newest {
				names = append(names, img.Name)
			}
		}
		return names
	}, typed)
}

func (a *app) completeUsers(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.completion(c, func(ctx context.Context, k *client.Client) []string {
		list, _ := k.Users(ctx)
		var names []string
		for _, u := range list {
			names = append(names, u.Name)
		}
		return names
	}, typed)
}

func (a *app) completeProjects(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.completion(c, func(ctx context.Context, k *client.Client) []string {
		list, _ := k.Projects(ctx)
		var names []string
		for _, p := range list.Projects {
			names = append(names, p.Name)
		}
		return names
	}, typed)
}

func (a *app) completeCourses(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.completion(c, func(ctx context.Context, k *client.Client) []string {
		list, _ := k.Courses(ctx)
		var names []string
		for _, x := range list.Courses {
			names = append(names, x.Name)
		}
		return names
	}, typed)
}
