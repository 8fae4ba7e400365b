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
		Use: "rotate", Short: "Replace the signing key", Args: exactly(),
		Long: `Creates a new signing key and destroys the previous private key; certificates that it
signed stay valid. Give the new public key to whoever verifies certificates:
'muster certificate key show'.

With --compromised, nothing that the key signed is valid any more for those who verify
with the server's list of keys ('key show -o json'). Measure the affected clusters
again. Administrators only.`,
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
	c.Flags().StringVar(&stolen, "compromised", "", "fingerprint of a compromised key")
	_ = c.RegisterFlagCompletionFunc("compromised", cobra.NoFileCompletions)
	return c
}
