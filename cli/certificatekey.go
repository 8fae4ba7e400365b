package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
	"github.com/spf13/cobra"
)

func (a *app) certificateKeyRotate() *cobra.Command {
	var stolen string
	c := &cobra.Command{
		Use: "rotate", Short: "Sign with a new key from now on", Args: exactly(),
		Long: `Makes a new key that signs from now on, and destroys the private half of the one
before; what that one signed stays valid. Give the new public key to those who
verify: 'muster certificate key show'.

With --compromised the key was stolen: nothing that it signed is believed any more,
by those who verify with the server's list of keys ('key show -o json'). Measure
the clusters again whose certificates it signed. Only administrators may.`,
		Example: `  muster certificate key rotate
  muster certificate key rotate --compromised sha256:6e34...`,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.checkOutput(); err != nil {
				return err
			}
			if c.Flags().Changed("compromised") && !strings.HasPrefix(stolen, "sha256:") {
				return muster.Errorf(muster.EInvalid, "--compromised cannot be %q", stolen).Because(muster.ReasonBadValue).WithHint("write the fingerprint of the key, as 'muster certificate key show -o json' shows it: sha256:...")
			}
			k, err := a.connect()
			if err != nil {
				return err
			}
			list, err := k.ChangeKey(c.Context(), wire.ChangeKey{Compromised: stolen})
			if err != nil {
				return err
			}
			return a.print(list, func(w io.Writer) {
				if n := len(list.Keys); n > 0 {
					fmt.Fprintf(w, "certificates are signed with %s now; give it to those who verify: muster certificate key show\n", list.Keys[n-1].ID)
				}
			})
		},
	}
	c.Flags().StringVar(&stolen, "compromised", "", "fingerprint of a key that was stolen")
	_ = c.RegisterFlagCompletionFunc("compromised", cobra.NoFileCompletions)
	return c
}
