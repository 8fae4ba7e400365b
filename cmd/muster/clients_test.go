package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// clientTable is the page of the table that clients checks.
const clientTable = "../../docs/users/ssh-clients.md"

// sshClient is a program by which users reach their clusters. script is run for each door in the
// directory of the story, with $DOOR, the port of the gateway as $PORT, and a folder of its own as $T;
// it succeeds if the client does all that it should.
type sshClient struct {
	name, needs, script string
}

// openSSH are the programs that OpenSSH's ssh carries.
const openSSH = `F="-F $DOOR.conf"; SSH="ssh $F"
`

// putty is how PuTTY's programs are called.
const putty = `
gate=$(sed -n 1p fingerprints); node=$(sed -n 2p fingerprints)
puttygen alice.key -O private -o $T/key.ppk
if [ $DOOR = plain ]; then
	putty="-batch -P $PORT -i $T/key.ppk -hostkey $gate" host=cfd+alice@127.0.0.1
	putty() { p=$1; shift; $p $putty "$@"; }
else
	proxy="plink -batch -P $PORT -i $T/key.ppk -hostkey $gate -nc %host:%port alice@127.0.0.1" host=alice@cfd
	if [ $DOOR = straight ]; then proxy="$PWD/straight %host"; fi
	putty() { p=$1; shift; $p -batch -i $T/key.ppk -hostkey $node -proxycmd "$proxy" "$@"; }
fi
`

func sshClients() []sshClient {
	return []sshClient{
		{"ssh", "ssh", openSSH + `
test "$(seq 50000 | $SSH c 'cat; echo wrong >&2' 2> $T/wrong | tail -1)" = 50000; grep -q '^wrong$' $T/wrong
set +e; $SSH c 'exit 7'; test $? = 7 || exit 1; $SSH c 'kill -TERM $$'; test $? = 255 || exit 1; set -e
$SSH -tt c 'test -t 0 && stty size' | grep -q '^[0-9]* [0-9]*'
NO_COLOR=seen $SSH -o SendEnv=NO_COLOR c 'echo $NO_COLOR' | grep -q '^seen$'
`},
		{"scp", "scp", openSSH + `scp -q $F data c:scp-$DOOR.data; scp -q $F c:scp-$DOOR.data $T/back; cmp data $T/back; scp -qr $F tree c:scp-$DOOR; scp -qr $F c:scp-$DOOR $T/tree; diff -r tree $T/tree`},
		{"scp -O", "scp", openSSH + `scp -qO $F data c:scpO-$DOOR.data; scp -qO $F c:scpO-$DOOR.data $T/back; cmp data $T/back; scp -qOr $F tree c:scpO-$DOOR; scp -qOr $F c:scpO-$DOOR $T/tree; diff -r tree $T/tree`},
		{"sftp", "sftp", openSSH + `printf "put data sftp-$DOOR.data\nget sftp-$DOOR.data $T/back\n" | sftp -q $F -b - c > $T/out; cmp data $T/back`},
		{"rsync", "rsync", openSSH + `rsync -a -e "$SSH" tree c:rsync-$DOOR; rsync -a -e "$SSH" c:rsync-$DOOR/tree $T; diff -r tree $T/tree`},
		{"sshfs", "sshfs", openSSH + `mkdir $T/mnt; sshfs -F $PWD/$DOOR.conf c: $T/mnt; trap "fusermount -u $T/mnt" EXIT; cp data $T/mnt/sshfs-$DOOR.data; cmp data $T/mnt/sshfs-$DOOR.data; mkdir $T/mnt/sshfs-$DOOR; rmdir $T/mnt/sshfs-$DOOR`},
		{"ssh -L", "ssh", openSSH + `
$SSH -M -S $T/s -fN -L $T/l:127.0.0.1:22 c; trap "ssh -S $T/s -O exit c" EXIT
python3 -c 'import socket,sys; s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); assert s.recv(8)==b"SSH-2.0-"' $T/l`},
		{"ssh -R", "ssh", openSSH + `$SSH -o ExitOnForwardFailure=yes -R /tmp/r-$DOOR:127.0.0.1:$PORT c "python3 -c 'import socket; s=socket.socket(socket.AF_UNIX); s.connect(\"/tmp/r-$DOOR\"); print(s.recv(14).decode())'" | grep -q SSH-2.0-muster`},
		{"ssh -D", "curl", openSSH + `
p=$(python3 -c 'import socket; s=socket.socket(); s.bind(("127.0.0.1",0)); print(s.getsockname()[1])')
$SSH -M -S $T/s -fN -D 127.0.0.1:$p c; trap "ssh -S $T/s -O exit c" EXIT
curl -sS --http0.9 -m 30 --socks5-hostname 127.0.0.1:$p http://127.0.0.1:22/ | head -c 8 | grep -q '^SSH-2.0-'`},
		{"git", "git", openSSH + `
export GIT_SSH_COMMAND="ssh -F $PWD/$DOOR.conf" GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.org
$SSH c git init -q --bare git-$DOOR; git init -q $T/one; cp -r tree $T/one; git -C $T/one add .; git -C $T/one commit -qm one
git -C $T/one push -q c:git-$DOOR HEAD:main; git clone -q -b main c:git-$DOOR $T/two; diff -r tree $T/two/tree`},
		{"plink", "plink", putty + `
set +e; echo in | putty plink $host 'cat; echo wrong >&2; exit 7' > $T/out 2> $T/wrong; test $? = 7 || exit 1; set -e; grep -q '^in$' $T/out; grep -q '^wrong$' $T/wrong`},
		{"pscp", "pscp", putty + `putty pscp -q data $host:pscp-$DOOR.data; putty pscp -q $host:pscp-$DOOR.data $T/back; cmp data $T/back; putty pscp -q -scp data $host:pscp-$DOOR.data; putty pscp -q -scp $host:pscp-$DOOR.data $T/back2; cmp data $T/back2`},
		{"psftp", "psftp", putty + `printf "put data psftp-$DOOR.data\nget psftp-$DOOR.data $T/back\n" > $T/do; putty psftp -b $T/do $host; cmp data $T/back`},
		{"lftp", "lftp", openSSH + `HOME=$T lftp -c "set cmd:fail-exit true; set net:max-retries 2; set sftp:connect-program \"ssh -a -x $F\"; open sftp://c; put data -o lftp-$DOOR.data; get lftp-$DOOR.data -o $T/back; mirror -R tree lftp-$DOOR; mirror lftp-$DOOR $T/tree" > $T/out; cmp data $T/back; diff -r tree $T/tree`},
		{"rclone", "rclone", openSSH + `
if [ $DOOR = plain ]; then set -- --sftp-host 127.0.0.1 --sftp-port $PORT --sftp-user cfd+alice --sftp-key-file alice.key --sftp-known-hosts-file known
else set -- --sftp-ssh "$SSH c"; fi
rclone -q --config /dev/null "$@" copy tree :sftp:rclone-$DOOR; rclone -q --config /dev/null "$@" copy :sftp:rclone-$DOOR $T/tree; diff -r tree $T/tree`},
		{"dbclient", "dbclient", `
dropbearconvert openssh dropbear alice.key $T/key 2> $T/convert
export HOME=$PWD/dropbear; set --; if [ $DOOR = plain ]; then host=cfd+alice@127.0.0.1/$PORT; else host=alice@127.0.0.1/$PORT,alice@cfd; fi
if [ $DOOR = straight ]; then host=alice@cfd; set -- -J "$PWD/straight cfd"; fi
set +e; echo in | $(command -v dbclient) -T -i $T/key "$@" $host 'cat; echo wrong >&2; exit 7' > $T/out 2> $T/wrong; test $? = 7 || { cat $T/wrong; exit 1; }; set -e; grep -q '^in$' $T/out; grep -q '^wrong' $T/wrong`},
		{"paramiko", "", `$PYTHON clients.py paramiko $DOOR $PORT`},
		{"AsyncSSH", "", `$PYTHON clients.py asyncssh $DOOR $PORT`},
	}
}

// clients runs every client through every door, and holds the results against the table of the page.
// Clients that are not installed are left out, unless MUSTER_CLIENTS is all.
func clients(ts *testscript.TestScript, _ bool, _ []string) {
	page, err := os.ReadFile(clientTable)
	ts.Check(err)
	doors, cells := tableOf(string(page))
	dir := ts.MkAbs(".")
	port, err := os.ReadFile(filepath.Join(dir, "port"))
	ts.Check(err)
	program, err := os.ReadFile("testdata/clients.py")
	ts.Check(err)
	ts.Check(os.WriteFile(filepath.Join(dir, "clients.py"), program, 0o600))
	python, err := filepath.Abs("../../.tools/clients/bin/python")
	ts.Check(err)
	env := append(os.Environ(), "HOME="+dir, "PYTHON="+python, "PORT="+strings.TrimSpace(string(port)), "PATH="+ts.Getenv("PATH"))
	var mu sync.Mutex
	var wrong []string
	var all sync.WaitGroup
	places := make(chan struct{}, 3)
	for _, c := range sshClients() {
		program := c.needs
		if program == "" {
			program = python
		}
		if _, err := exec.LookPath(program); err != nil {
			if os.Getenv("MUSTER_CLIENTS") == "all" {
				ts.Fatalf("%s is not installed: scripts/setup clients", c.name)
			}
			ts.Logf("%s is not installed", c.name)
			continue
		}
		for i, door := range doors {
			want := ""
			if row := cells[c.name]; i < len(row) {
				want = row[i]
			}
			all.Go(func() {
				places <- struct{}{}
				defer func() { <-places }()
				said, err := runClient(dir, c, door, env)
				if expected, _, _ := strings.Cut(want, ","); expected == "no" == (err != nil) && want != "" {
					return
				}
				mu.Lock()
				defer mu.Unlock()
				wrong = append(wrong, fmt.Sprintf("%s, %s door: the page says %q, and it came out so: %v\n%s", c.name, door, want, err, said))
			})
		}
	}
	all.Wait()
	if len(wrong) > 0 {
		ts.Fatalf("%s differs:\n%s", clientTable, strings.Join(wrong, "\n"))
	}
}

// runClient runs one client through one door.
func runClient(dir string, c sshClient, door string, env []string) (string, error) {
	own := strings.ReplaceAll(c.name, " ", "") + "." + door
	if err := os.Mkdir(filepath.Join(dir, own), 0o700); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute) // one that waits for somebody
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-euc", c.script)
	cmd.WaitDelay = 10 * time.Second
	cmd.Dir, cmd.Env = dir, append(env[:len(env):len(env)], "DOOR="+door, "T="+own)
	said, err := cmd.CombinedOutput()
	return string(said), err
}

// tableOf reads the first table of a page: the doors in its head, and what it says of each client.
func tableOf(page string) (doors []string, cells map[string][]string) {
	cells = map[string][]string{}
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			if len(cells) > 0 {
				break
			}
			continue
		}
		row := strings.Split(strings.Trim(line, "|"), "|")
		for i := range row {
			row[i] = strings.Trim(strings.TrimSpace(row[i]), "`")
		}
		switch {
		case doors == nil:
			doors = row[1:]
		case !strings.HasPrefix(row[0], "---"):
			cells[row[0]] = row[1:]
		}
	}
	return doors, cells
}
