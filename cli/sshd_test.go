package cli_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os/exec"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/store"
	"golang.org/x/crypto/ssh"
)

// sshd answers on the nodes of a cluster as a node's sshd does: it has the node's host key, and it lets in who has a certificate for
// user@cluster. Commands are run by the shell of this host, with env.
func sshd(t testing.TB, s *controltest.Site, id muster.ClusterID, env ...string) {
	t.Helper()
	var userCA pki.SSHAuthority
	hosts := map[string]ssh.Signer{}
	err := s.Store.View(t.Context(), muster.System(), func(tx *store.Tx) error {
		raw, err := tx.Secret(id, muster.SecretUserCA)
		if err != nil {
			return err
		}
		if userCA, err = pki.ParseSSHAuthority(raw); err != nil {
			return err
		}
		nodes, err := tx.Nodes(id)
		for _, n := range nodes {
			if raw, err = tx.Secret(id, muster.SecretHostKey(n.Name)); err != nil {
				return err
			}
			if hosts[n.Name], err = ssh.ParsePrivateKey(raw); err != nil {
				return err
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	trusted, _, _, _, err := ssh.ParseAuthorizedKey([]byte(userCA.PublicLine()))
	if err != nil {
		t.Fatal(err)
	}
	s.Dialer.To(func(m muster.Machine) (net.Conn, error) {
		near, far := net.Pipe()
		go serveSSH(far, m.Node, string(id), hosts[m.Node], trusted, env)
		return near, nil
	})
}

func serveSSH(conn net.Conn, node, id string, host ssh.Signer, trusted ssh.PublicKey, env []string) {
	defer conn.Close()
	checker := &ssh.CertChecker{IsUserAuthority: func(k ssh.PublicKey) bool { return string(k.Marshal()) == string(trusted.Marshal()) }}
	config := &ssh.ServerConfig{PublicKeyCallback: func(c ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		cert, ok := key.(*ssh.Certificate)
		if !ok || !checker.IsUserAuthority(cert.SignatureKey) {
			return nil, fmt.Errorf("not a certificate of this cluster")
		}
		return &ssh.Permissions{}, checker.CheckCert(c.User()+"@"+id, cert)
	}}
	config.AddHostKey(host)
	sc, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for c := range channels {
		if c.ChannelType() != "session" {
			_ = c.Reject(ssh.UnknownChannelType, "")
			continue
		}
		ch, reqs, err := c.Accept()
		if err != nil {
			return
		}
		go session(ch, reqs, sc.User(), node, env)
	}
}

func session(ch ssh.Channel, reqs <-chan *ssh.Request, user, node string, env []string) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for r := range reqs {
		switch r.Type {
		case "exec":
			var p struct{ Command string }
			_ = ssh.Unmarshal(r.Payload, &p)
			_ = r.Reply(true, nil)
			go func() {
				defer ch.Close()
				cmd := exec.CommandContext(ctx, "/bin/sh", "-c", p.Command)
				cmd.Env = append([]string{"PATH=/usr/bin:/bin", "NODE=" + node, "USER=" + user}, env...)
				in, _ := cmd.StdinPipe()
				cmd.Stdout, cmd.Stderr = ch, ch.Stderr()
				_ = cmd.Start()
				go func() { _, _ = io.Copy(in, ch); in.Close() }()
				_ = cmd.Wait()
				status := struct{ Status uint32 }{uint32(max(cmd.ProcessState.ExitCode(), 0))}
				_, _ = ch.SendRequest("exit-status", false, ssh.Marshal(status))
			}()
		case "signal":
			cancel()
		default:
			_ = r.Reply(true, nil)
		}
	}
}
