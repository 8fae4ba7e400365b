package main

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/daemon"
	"github.com/spf13/cobra"
)

// stateOr is the state directory that is meant: the one that is named, or that of the
// server that commands speak to, where it is on this host.
func stateOr(named string) string {
	if named != "" {
		return named
	}
	if path, ok := strings.CutPrefix(os.Getenv("MUSTER_SERVER"), "unix:"); ok && filepath.IsAbs(path) {
		return filepath.Dir(path)
	}
	return "/var/lib/muster"
}

func backupCommand() *cobra.Command {
	var state, from string
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Back up the state of a server into one file",
		Long: `Writes a consistent copy of the records, keys and notes of a state directory to one new
file (mode 0600). The server can keep running. The file is read back and verified before
it gets its final name.

It contains all secrets of the site. With --passphrase-file it is encrypted (age,
scrypt).

Not included: images (they can be rebuilt), data in volumes (back it up like any other
data), and usage history.`,
		Example: `  muster backup /mnt/backup/muster-2026-01-31 --passphrase-file /root/muster.pass
  muster backup verify /mnt/backup/muster-2026-01-31 --passphrase-file /root/muster.pass`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			pass, err := passphrase(from)
			if err != nil {
				return err
			}
			c, err := daemon.Backup(cmd.Context(), stateOr(state), args[0], pass, version)
			if err != nil {
				return err
			}
			cmd.Printf("%s: %d files of site %s, epoch %d, verified\n", args[0], len(c.Files), c.Instance, c.Epoch)
			if pass == "" {
				cmd.PrintErrln("warning: the backup is not encrypted and contains the keys of the site; use --passphrase-file FILE to encrypt it")
			}
			return nil
		},
	}
	verify := &cobra.Command{
		Use: "verify FILE", Short: "Verify a backup", Args: cobra.ExactArgs(1),
		Example: "  muster backup verify /mnt/backup/muster-2026-01-31 --passphrase-file /root/muster.pass",
		Long:    "Reads a backup and verifies the digest of every file in it. Nothing is written.",
		RunE: func(cmd *cobra.Command, args []string) error {
			pass, err := passphrase(from)
			if err != nil {
				return err
			}
			c, err := daemon.VerifyBackup(args[0], pass)
			if err != nil {
				return err
			}
			cmd.Printf("%s: whole: %d files of site %s, epoch %d, made %s\n", args[0], len(c.Files), c.Instance, c.Epoch, c.Made.Format("2006-01-02 15:04:05 UTC"))
			return nil
		},
	}
	cmd.AddCommand(verify)
	cmd.PersistentFlags().StringVar(&from, "passphrase-file", "", "file whose first line is the passphrase")
	cmd.Flags().StringVar(&state, "state", "", "state directory of the server (default that of MUSTER_SERVER's socket, or /var/lib/muster)")
	return cmd
}

func restoreCommand() *cobra.Command {
	var (
		state, from string
		replace     bool
	)
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Restore the state of a server from a backup",
		Long: `Restores records and keys from a backup into a state directory whose database is lost or,
with --replace, into one that has a database. No server may be running there. Existing
files are moved to a directory next to it; an interrupted restore can be repeated. The
restored records begin a new epoch, and nodes obey only the newest one: a server that
still runs elsewhere with the old records stops acting as soon as it hears from such a
node. Stop it first, if you can reach it.

Changes made after the backup are lost: users removed since have access again and
clusters deleted since are back until you remove them again. One-time tokens are void,
and free machines are cleaned again. Running machines that are not in the backup are
listed at the next start, which does nothing until you decide about them
(muster cleanup --orphans).`,
		Example: "  muster restore /mnt/backup/muster-2026-01-31 --passphrase-file /root/muster.pass --state /var/lib/muster",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			pass, err := passphrase(from)
			if err != nil {
				return err
			}
			state = stateOr(state)
			c, aside, err := daemon.Restore(cmd.Context(), args[0], pass, state, replace)
			if err != nil {
				return err
			}
			cmd.Printf("%s is as it was at %s; start the server\n", state, c.Made.Format("2006-01-02 15:04:05 UTC"))
			if _, err := os.Stat(aside); err == nil {
				cmd.Printf("what was there is in %s\n", aside)
			}
			cmd.PrintErrln("note: rights that were taken and clusters that were deleted since are there again: look at `muster user list`, `muster token list` and `muster list`")
			return nil
		},
	}
	cmd.Flags().StringVar(&from, "passphrase-file", "", "file whose first line is the passphrase")
	cmd.Flags().StringVar(&state, "state", "", "state directory of the server (default that of MUSTER_SERVER's socket, or /var/lib/muster)")
	cmd.Flags().BoolVar(&replace, "replace", false, "move the existing database aside")
	return cmd
}

// passphrase reads the first line of a file; "" where none is named.
func passphrase(file string) (string, error) {
	if file == "" {
		return "", nil
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return "", muster.Errorf(muster.EInvalid, "--passphrase-file %s cannot be read", file).Because(muster.ReasonFileUnreadable).WithHint("name a file with the passphrase in its first line").Wrap(err)
	}
	line, _, _ := strings.Cut(string(b), "\n")
	if line = strings.TrimRight(line, "\r"); len(line) < 8 {
		return "", muster.Errorf(muster.EInvalid, "the passphrase in %s is too short", file).Because(muster.ReasonBadValue).WithHint("its first line must have 8 characters or more")
	}
	return line, nil
}
