"""Runs a command, with its status, and copies a file there and back: paramiko or AsyncSSH."""
import asyncio
import sys

library, door, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
user = "cfd+alice" if door == "plain" else "alice"
command = "cat; echo wrong >&2; exit 7"
data = open("data", "rb").read()


def with_paramiko():
    import paramiko

    def connect(host, port, user, sock=None):
        c = paramiko.SSHClient()
        c.load_host_keys("known.plain")
        c.set_missing_host_key_policy(paramiko.RejectPolicy())
        c.connect(host, port, user, key_filename="alice.key", allow_agent=False, look_for_keys=False, sock=sock)
        return c

    if door == "straight":
        c = connect("cfd", 22, "alice", paramiko.ProxyCommand("./straight cfd"))
    else:
        c = connect("127.0.0.1", port, user)
    if door == "jump":
        c = connect("cfd", 22, "alice", c.get_transport().open_channel("direct-tcpip", ("cfd", 22), ("127.0.0.1", 0)))
    i, o, e = c.exec_command(command)
    i.write(b"in")
    i.channel.shutdown_write()
    said = o.read(), e.read(), o.channel.recv_exit_status()
    f = c.open_sftp()
    f.put("data", "paramiko-" + door)
    return said, f.open("paramiko-" + door).read()


async def with_asyncssh():
    import asyncssh

    key = dict(client_keys=["alice.key"], known_hosts="known.plain", agent_path=None)
    if door == "straight":
        c = await asyncssh.connect("cfd", username="alice", proxy_command=["./straight", "cfd"], **key)
    else:
        c = await asyncssh.connect("127.0.0.1", port, username=user, **key)
    if door == "jump":
        c = await asyncssh.connect("cfd", username="alice", tunnel=c, **key)
    r = await c.run(command, input="in")
    said = r.stdout.encode(), r.stderr.encode(), r.exit_status
    await asyncssh.scp("data", (c, "asyncssh-" + door))
    async with c.start_sftp_client() as f:
        async with f.open("asyncssh-" + door, "rb") as there:
            return said, await there.read()


said, back = with_paramiko() if library == "paramiko" else asyncio.run(with_asyncssh())
assert said == (b"in", b"wrong\n", 7), said
assert back == data, len(back)
