package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/api/client"
	"github.com/muster-hpc/muster/wire"
	"github.com/spf13/cobra"
)

func (a *app) key() *cobra.Command {
	c := &cobra.Command{
		Use: "key", Short: "Manage the SSH keys of a user", Args: cobra.ArbitraryArgs, RunE: group,
		Long: `Public SSH keys let a user log in to their clusters: through the gateway, if the site has one,
and directly. muster ssh and muster exec need none.`,
		Example: `  muster key add ~/.ssh/id_ed25519.pub
  muster key list`,
	}
	var user string
	c.PersistentFlags().StringVar(&user, "user", "", "whose keys (default: yours)")
	_ = c.RegisterFlagCompletionFunc("user", a.completeUsers)
	c.AddCommand(a.keyAdd(&user), a.keyList(&user), a.keyRemove(&user))
	return c
}

func (a *app) keyAdd(user *string) *cobra.Command {
	var r wire.KeyRequest
	c := &cobra.Command{
		Use: "add FILE", Short: "Add public keys from a file", Args: exactly("FILE"),
		Long: `Adds public keys, one a line: Ed25519, ECDSA, RSA of 3072 bits or more, and those of FIDO2
security keys (sk-). With --ttl a key lets nobody in after that time, neither at the gateway
nor on a node. To change the purpose or the end of a key, add it again.

With --authority a key is that of an SSH certificate authority: certificates that it signs let in
whose principals have the user's name, or one of --principals. A certificate that is added itself
(id_ed25519-cert.pub) lets in as long as it is valid.`,
		Example: `  muster key add ~/.ssh/id_ed25519.pub --user alice
  muster key add nightly.pub --ttl 30d --purpose "nightly transfers"
  muster key add ca.pub --authority --principals alice,alice@example.org`,
		RunE: func(c *cobra.Command, args []string) error {
			keys, err := a.readKeys(args[0])
			if err != nil {
				return err
			}
			return a.onKeys(c.Context(), *user, func(k *client.Client, name string) (u wire.KeysChanged, err error) {
				for _, key := range keys {
					one := r
					one.Key = key
					if u, err = k.AddKey(c.Context(), name, one); err != nil {
						return u, err
					}
				}
				return u, nil
			})
		},
	}
	c.Flags().StringVar(&r.TTL, "ttl", "", "how long it lets in: 12h, 30d (default: without an end)")
	c.Flags().StringVar(&r.Purpose, "purpose", "", "what it is for")
	c.Flags().BoolVar(&r.Authority, "authority", false, "it signs certificates, which let in")
	c.Flags().StringSliceVar(&r.Principals, "principals", nil, "with --authority: whom a certificate must be for (default: the user's name)")
	return c
}

func (a *app) keyList(user *string) *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List keys, with their terms and last use at the gateway", Args: exactly(),
		Example: `  muster key list --user alice
  muster key list -o json`,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.onKeys(c.Context(), *user, func(*client.Client, string) (wire.KeysChanged, error) { return wire.KeysChanged{}, nil })
		},
	}
}

func (a *app) keyRemove(user *string) *cobra.Command {
	return &cobra.Command{
		Use: "remove KEY", Aliases: []string{"rm"}, Short: "Remove a key, by fingerprint or comment", Args: exactly("KEY"),
		Long:    `Removes a key. Sessions at the gateway that it opened end within seconds.`,
		Example: `  muster key remove SHA256:3FOO...`,
		RunE: func(c *cobra.Command, args []string) error {
			return a.onKeys(c.Context(), *user, func(k *client.Client, name string) (wire.KeysChanged, error) {
				return k.RemoveKey(c.Context(), name, args[0])
			})
		},
	}
}

// onKeys does something with a user's keys and shows what they are then.
func (a *app) onKeys(ctx context.Context, user string, do func(*client.Client, string) (wire.KeysChanged, error)) error {
	if err := a.checkOutput(); err != nil {
		return err
	}
	k, err := a.connect()
	if err != nil {
		return err
	}
	if user == "" {
		user = a.person()
		if a.env.getenv("MUSTER_TOKEN") != "" || a.tokenFile != "" {
			server, err := k.Server(ctx)
			if err != nil {
				return err
			}
			user = server.You
		}
	}
	if user == "" {
		return muster.Errorf(muster.EInvalid, "it is not clear whose keys").Because(muster.ReasonRequired).WithHint("say --user NAME")
	}
	u, err := do(k, user)
	if err != nil {
		return err
	}
	keys, err := k.Keys(ctx, user)
	if err != nil {
		return err
	}
	if keys == nil {
		keys = []muster.SSHKey{}
	}
	return a.print(keys, func(w io.Writer) {
		if len(keys) == 0 {
			fmt.Fprintf(w, "%s has no keys. Add one: muster key add FILE\n", clean(user))
		} else {
			t := newTable("FINGERPRINT", "TYPE", "COMMENT", "PURPOSE", "EXPIRES", "LAST USED")
			for _, x := range keys {
				t.row(x.Fingerprint, keyType(x), x.Comment, x.Purpose, expiry(x, time.Now()), lastUse(x))
			}
			t.write(w)
		}
		for _, p := range u.Pending {
			fmt.Fprintf(w, "cluster %s: ", clean(p.Cluster))
			writeApplied(w, p.Cluster, &p.Applied)
		}
	})
}

// keyType is what a key is; of an authority for whom, and of a certificate which.
func keyType(k muster.SSHKey) string {
	switch {
	case k.Authority:
		return "authority for " + strings.Join(k.Principals, ",") + " (" + k.Type + ")"
	case k.IsCertificate():
		return fmt.Sprintf("certificate %s, serial %d (%s)", k.Certificate, k.Serial, strings.TrimSuffix(k.Type, "-cert-v01@openssh.com"))
	}
	return k.Type
}

func expiry(k muster.SSHKey, now time.Time) string {
	switch {
	case k.Expires.IsZero():
		return "-"
	case k.Expired(now):
		return "expired " + stamp(k.Expires)
	}
	return stamp(k.Expires)
}

func lastUse(k muster.SSHKey) string {
	if k.Used.IsZero() {
		return "-"
	}
	return fmt.Sprintf("%s from %s (%s)", stamp(k.Used), k.UsedFrom, k.UsedDoor)
}

// readKeys reads public keys, one a line.
func (a *app) readKeys(file string) ([]string, error) {
	text, err := a.readUpTo(file, maxRequest, "public keys")
	if err != nil {
		return nil, err
	}
	if strings.Contains(string(text), "PRIVATE KEY") {
		return nil, muster.Errorf(muster.EInvalid, "%s is a private key; it was not sent", file).Because(muster.ReasonPrivateKey).WithHint("give the file that ends in .pub")
	}
	var keys []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			keys = append(keys, line)
		}
	}
	if len(strings.TrimSpace(string(text))) == 0 {
		return nil, muster.Errorf(muster.EInvalid, "%s is empty: there is no key in it", file).Because(muster.ReasonBadSSHKey).WithHint("give the file that ends in .pub; `ssh-keygen -t ed25519` makes one")
	}
	if len(keys) == 0 {
		return nil, muster.Errorf(muster.EInvalid, "no key in %s", file).Because(muster.ReasonBadSSHKey).WithHint("give the file that ends in .pub")
	}
	return keys, nil
}

func (a *app) token() *cobra.Command {
	c := &cobra.Command{
		Use: "token", Short: "Manage tokens for the network API", Args: cobra.ArbitraryArgs, RunE: group,
		Long: `A token lets its holder speak for a user over the network. Put it into MUSTER_TOKEN
or a file for --token-file; it is never given as an argument.`,
		Example: `  muster token create alice > alice.token
  muster token list`,
	}
	c.AddCommand(a.tokenCreate(), a.tokenList(), a.tokenRevoke())
	return c
}

func (a *app) tokenCreate() *cobra.Command {
	var r wire.TokenRequest
	c := &cobra.Command{
		Use: "create [USER]", Short: "Create a token; it is shown only once", Args: atMost(1),
		Long: `Creates a token and prints only the token to standard output.

With --read-only it is for what watches the site, such as Prometheus: it reads everything
that administrators read but secrets, consoles and logs, and changes nothing, whoever its
user is. Administrators only.`,
		Example: `  muster token create alice --ttl 30d --note laptop > alice.token
  muster token create prometheus --read-only --ttl 52w > prometheus.token`,
		ValidArgsFunction: a.completeUsers,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				r.User = args[0]
			}
			k, err := a.connect()
			if err != nil {
				return err
			}
			t, err := k.CreateToken(c.Context(), r)
			if err != nil {
				return err
			}
			return a.print(t, func(w io.Writer) {
				fmt.Fprintln(w, t.Secret)
				fmt.Fprintf(a.env.Err, "token %s of %s, until %s; it is not shown again\n", t.ID, clean(t.User), stamp(t.Expires))
			})
		},
	}
	c.Flags().StringVar(&r.TTL, "ttl", "", "lifetime: 12h, 30d (default 90d)")
	c.Flags().StringVar(&r.Note, "note", "", "description")
	c.Flags().BoolVar(&r.ReadOnly, "read-only", false, "for monitoring: it reads the whole site and changes nothing")
	return c
}

func (a *app) tokenList() *cobra.Command {
	var user string
	c := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List tokens, without their secrets", Args: exactly(),
		Example: `  muster token list --user alice`,
		RunE: func(c *cobra.Command, _ []string) error {
			k, err := a.connect()
			if err != nil {
				return err
			}
			list, err := k.Tokens(c.Context(), user)
			if err != nil {
				return err
			}
			return a.print(list, func(w io.Writer) {
				if len(list) == 0 {
					fmt.Fprintln(w, "No tokens. Make one: muster token create USER")
					return
				}
				t := newTable("ID", "USER", "CREATED", "EXPIRES", "NOTE")
				for _, x := range list {
					note := x.Note
					if x.ReadOnly {
						note = strings.TrimSuffix("read only, "+note, ", ")
					}
					t.row(x.ID, x.User, stamp(x.Created), stamp(x.Expires), note)
				}
				t.write(w)
			})
		},
	}
	c.Flags().StringVar(&user, "user", "", "only this user")
	_ = c.RegisterFlagCompletionFunc("user", a.completeUsers)
	return c
}

func (a *app) tokenRevoke() *cobra.Command {
	return &cobra.Command{
		Use: "revoke ID", Short: "Revoke a token", Args: exactly("ID"),
		Example: `  muster token revoke t-8x2k4v9w`,

		ValidArgsFunction: a.completeToken,
		RunE: func(c *cobra.Command, args []string) error {
			k, err := a.connect()
			if err != nil {
				return err
			}
			if err := k.RevokeToken(c.Context(), args[0]); err != nil {
				return err
			}
			return a.print(wire.Done{Status: "revoked"}, func(w io.Writer) { fmt.Fprintf(w, "token %s revoked\n", clean(args[0])) })
		},
	}
}
