package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/suggest"
	"github.com/muster-hpc/muster/wire"
	"github.com/spf13/cobra"
	"golang.org/x/crypto/ssh"
)

func (a *app) user() *cobra.Command {
	c := &cobra.Command{
		Use: "user", Short: "Manage users", Args: cobra.ArbitraryArgs, RunE: group,
		Example: `  muster user add alice --projects bio --key ~/alice.pub
  muster user list`,
	}
	c.AddCommand(a.userAdd(), a.userList(), a.userShow(), a.userRemove())
	return c
}

func (a *app) userAdd() *cobra.Command {
	var r wire.UserRequest
	var keyFiles []string
	c := &cobra.Command{
		Use: "add NAME", Short: "Add or change a user", Args: exactly("NAME"),
		Long: `Adds a user with a numeric ID (UID) that is the same on every node of every cluster and
is never reused. For an existing user, only the given fields are changed.

A name is a lower-case letter followed by letters, digits, dots, hyphens and underscores,
31 characters at most: jane.doe. Of EXAMPLE\john or john@example.org, use john. A UID may be
one of your site's directory, such as 1234601104; local machines have UIDs up to 65535,
bare machines all.`,
		Example: `  muster user add alice --full-name "Alice Archer" --projects bio,climate --key alice.pub`,
		RunE: func(c *cobra.Command, args []string) error {
			r.Name = args[0]
			for _, file := range keyFiles {
				keys, err := a.readKeys(file)
				if err != nil {
					return err
				}
				r.Keys = append(r.Keys, keys...)
			}
			k, err := a.connect()
			if err != nil {
				return err
			}
			before, _ := k.Users(c.Context())
			u, err := k.PutUser(c.Context(), r)
			if err != nil {
				return err
			}
			for _, n := range slips(r.Projects, before) {
				fmt.Fprintln(a.env.Err, "note:", n)
			}
			return a.print(u, func(w io.Writer) { writeUser(w, u) })
		},
	}
	flags := c.Flags()
	flags.StringSliceVar(&r.Projects, "projects", nil, "projects (default: one named after the user)")
	flags.StringVar(&r.FullName, "full-name", "", "full name")
	flags.IntVar(&r.UID, "uid", 0, "numeric user ID (default: the next free one)")
	flags.StringArrayVar(&keyFiles, "key", nil, "file with public SSH keys; - is standard input")
	flags.BoolVar(&r.Admin, "admin", false, "administrator")
	return c
}

// slips reports projects that begin with this and look like others.
func slips(projects []string, before []muster.User) []string {
	known := []string{"default"}
	for _, u := range before {
		known = append(known, u.Projects...)
	}
	var notes []string
	stem := func(name string) string { return strings.TrimRight(name, "0123456789") }
	for _, p := range projects {
		if slices.Contains(known, p) {
			continue
		}
		others := slices.DeleteFunc(slices.Clone(known), func(k string) bool { return stem(k) == stem(p) }) // run1, run2
		if meant := suggest.Slip(p, others); meant != "" {
			notes = append(notes, fmt.Sprintf("project %s is new; if you meant %s: muster user add NAME --projects %s", clean(p), clean(meant), clean(meant)))
		}
	}
	return notes
}

func (a *app) userList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List users", Args: exactly(),
		Example: `  muster user list -o json`,
		RunE: func(c *cobra.Command, _ []string) error {
			k, err := a.connect()
			if err != nil {
				return err
			}
			list, err := k.Users(c.Context())
			if err != nil {
				return err
			}
			return a.print(list, func(w io.Writer) {
				if len(list) == 0 {
					fmt.Fprintln(w, "No users. Make one: muster user add NAME")
					return
				}
				t := newTable("NAME", "UID", "PROJECTS", "KEYS", "FULL NAME", "ADMIN")
				for _, u := range list {
					admin := "no"
					if u.Admin {
						admin = "yes"
					}
					t.row(u.Name, fmt.Sprint(u.UID), strings.Join(u.Projects, " "), fmt.Sprint(len(u.Keys)), u.FullName, admin)
				}
				t.write(w)
			})
		},
	}
}

func (a *app) userShow() *cobra.Command {
	return &cobra.Command{
		Use: "show NAME", Short: "Show a user and their keys", Args: exactly("NAME"),
		Example:           `  muster user show alice`,
		ValidArgsFunction: a.completeUsers,
		RunE: func(c *cobra.Command, args []string) error {
			k, err := a.connect()
			if err != nil {
				return err
			}
			u, err := k.User(c.Context(), args[0])
			if err != nil {
				return err
			}
			return a.print(u, func(w io.Writer) { writeUser(w, u) })
		},
	}
}

func writeUser(w io.Writer, u muster.User) {
	admin := ""
	if u.Admin {
		admin = "yes"
	}
	fields(w, "user", u.Name, "uid", fmt.Sprint(u.UID), "full name", u.FullName, "projects", strings.Join(u.Projects, " "), "administrator", admin)
	for _, line := range u.Keys {
		key, comment, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
		if err == nil {
			fmt.Fprintf(w, "key  %s  %s  %s\n", ssh.FingerprintSHA256(key), key.Type(), clean(comment))
		}
	}
}

func (a *app) userRemove() *cobra.Command {
	return &cobra.Command{
		Use: "remove NAME", Aliases: []string{"rm"}, Short: "Remove a user who uses no cluster", Args: exactly("NAME"),
		Example:           `  muster user remove alice`,
		ValidArgsFunction: a.completeUsers,
		RunE: func(c *cobra.Command, args []string) error {
			k, err := a.connect()
			if err != nil {
				return err
			}
			if err := k.RemoveUser(c.Context(), args[0]); err != nil {
				return err
			}
			return a.print(wire.Done{Status: "removed"}, func(w io.Writer) { fmt.Fprintf(w, "user %s removed\n", clean(args[0])) })
		},
	}
}
