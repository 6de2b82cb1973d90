#!/usr/bin/env python3
"""Purges a fleet while its parts fail, and checks that no answer is older than a confirmed purge.

    Tests/Fleet/purge_faults.py PIPECTL [--seconds 60] [--seed N] [--only FAULT] [--strict] [--no-bucket]

PIPECTL is the built program. Three nodes run behind nginx (or HAProxy), with a Redis server and a bucket of
`rclone serve s3`. Each node reaches Redis and the bucket through a forwarder that the script can cut. All the time,
pictures change at their origin and are purged by source, prefix and tag at random nodes, and clients ask for them
through the proxy and at each node. Meanwhile nodes are killed and stopped, Redis is emptied or killed, and connections
are cut or go silent.

A picture's colour is its version, so an answer says how old it is. A purge is confirmed if its answer is a 200 without
`unconfirmed`. A request that is sent later must not get an older version, except as docs/fleet.md says:

    relies  the purge was confirmed less than `fleet.seconds` before the request was sent
    away    the node that answered could not reach Redis; with --strict, that is no excuse
    tag     a purge by tag does not reach what only the bucket has; --no-bucket runs without one

Failed requests and unconfirmed purges are counted, and are no errors. At the end everything is repaired, and every node
must answer with what was purged last. Prints each fault and older answer (at most five for each fault), and exits with
1 if an answer was too old. `--only` runs the faults whose names contain a text. `--seed` repeats an order of faults,
but the timing differs from run to run.

Needs redis-server, nginx or haproxy, openssl, and rclone (scripts/install-s3-servers). Uses the loopback interface
only, and terminates every program that it has started.
"""
import argparse
import asyncio
import collections
import contextlib
import http.server
import json
import os
import pathlib
import random
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import zlib

import hashing_test as fleet

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
NODES, GROUPS, MEMBERS = 3, 6, 3
RELIES = 0.5  # `fleet.seconds`
TOKEN = "0123456789abcdef"
# Seconds that a client waits for an answer, and that the end may take.
PATIENCE, REPAIR = 6, 60
KEYS = [(group, member) for group in range(GROUPS) for member in range(MEMBERS)]


# --- Pictures: the colour is the version, four bits in each channel ---


def picture(key, version):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    colour = bytes(17 * (version >> shift & 15) for shift in (8, 4, 0))
    rows = (b"\0" + colour * 24) * 24
    # Equal pictures of two sources would share variants.
    comment = f"Comment\0{key} {version}".encode()
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 24, 24, 8, 2, 0, 0, 0))
            + chunk(b"tEXt", comment) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def version_of(png):
    """The version of a picture, by its first pixel, which no filter of PNG changes."""
    position, parts = 8, collections.defaultdict(bytes)
    while position < len(png):
        length, kind = struct.unpack(">I4s", png[position:position + 8])
        parts[kind] += png[position + 8:position + 8 + length]
        position += 12 + length
    depth, kind = parts[b"IHDR"][8], parts[b"IHDR"][9]
    row = zlib.decompress(parts[b"IDAT"])[1:4]
    if kind == 3:
        index = row[0] >> (8 - depth)
        row = parts[b"PLTE"][3 * index:3 * index + 3]
    elif kind in (0, 4):
        value = row[0] if depth == 8 else (row[0] >> (8 - depth)) * 255 // ((1 << depth) - 1)
        row = bytes([value] * 3)
    high, middle, low = (round(channel / 17) for channel in row)
    return high << 8 | middle << 4 | low


class Origin:
    """Serves the pictures as they are now."""

    def __init__(self):
        self.versions = dict.fromkeys(KEYS, 1)
        origin = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                found = re.fullmatch(r"/g(\d+)/(\d+)\.png", self.path)
                key = (int(found[1]), int(found[2])) if found else None
                if key not in origin.versions:
                    return self.send_error(404)
                version = origin.versions[key]
                tag = f'"{key[0]}-{key[1]}-{version}"'
                is_same = self.headers.get("If-None-Match") == tag
                body = b"" if is_same else picture(key, version)
                self.send_response(304 if is_same else 200)
                fields = {"ETag": tag, "Cache-Control": "max-age=3600", "Cache-Tag": f"g{key[0]}"}
                if not is_same:
                    fields |= {"Content-Type": "image/png", "Content-Length": str(len(body))}
                for field in fields.items():
                    self.send_header(*field)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *arguments):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.base = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def source(self, key):
        return f"{self.base}/g{key[0]}/{key[1]}.png"

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


class Link:
    """Forwards connections to a port until it is cut; then it refuses them, or leaves them without an answer."""

    def __init__(self, target):
        self.target, self.state, self.repaired = target, "open", -1e9
        self.writers = set()
        # Cleared while the link is silent.
        self.speaks = asyncio.Event()
        self.speaks.set()

    async def start(self):
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        self.port = self.server.sockets[0].getsockname()[1]
        return self

    async def serve(self, reader, writer):
        pumps = []
        self.writers.add(writer)
        try:
            if self.state == "refuses":
                return
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.target)
            self.writers.add(far_writer)
            pumps = [asyncio.create_task(self.pump(*pair)) for pair in ((reader, far_writer), (far_reader, writer))]
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            self.writers.discard(far_writer)
            far_writer.transport.abort()
        except OSError:
            pass
        finally:
            for pump in pumps:
                pump.cancel()
            self.writers.discard(writer)
            writer.transport.abort()

    async def pump(self, reader, writer):
        with contextlib.suppress(OSError):
            while data := await reader.read(65_536):
                await self.speaks.wait()
                writer.write(data)
                await writer.drain()

    def cut(self, state):
        self.state = state
        (self.speaks.clear if state == "silent" else self.speaks.set)()
        if state == "refuses":
            for writer in self.writers:
                writer.transport.abort()

    def repair(self):
        if self.state != "open":
            self.repaired = time.monotonic()
        # What was sent into the silence is lost, as on a network that comes back.
        for writer in self.writers if self.state == "silent" else ():
            writer.transport.abort()
        self.state = "open"
        self.speaks.set()

    def stop(self):
        self.cut("refuses")
        self.server.close()


class Program:
    """A program on a port of its own that can be killed and started again."""

    def __init__(self, name, folder, command):
        self.name, self.folder, self.command, self.process = name, folder, command, None
        folder.mkdir(parents=True, exist_ok=True)
        self.port = fleet.free_port()
        self.since = 1e18

    async def start(self):
        with open(self.folder / "output", "ab") as output:
            self.process = fleet.started(
                self.command(self), stdout=output, stderr=output,
                env={"PATH": os.environ.get("PATH", "") + ":/usr/sbin", "HOME": str(self.folder)})

        def listens():
            text = (self.folder / "output").read_text(errors="replace")[-2000:]
            fleet.expect(self.process.poll() is None, f"{self.name} has ended: {text}")
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", self.port)) == 0
        await fleet.until(listens, f"{self.name} that listens")
        self.since = time.monotonic()

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process, self.since = None, 1e18


def redis_command(program):
    return ["redis-server", "--port", str(program.port), "--bind", "127.0.0.1", "--save", "", "--dir",
            str(program.folder)]


def bucket_command(program):
    installed = REPOSITORY / ".build/s3-servers/bin/rclone"
    (program.folder / "store/cache").mkdir(parents=True, exist_ok=True)
    return [str(installed) if installed.exists() else "rclone", "serve", "s3", "--auth-key", "ACCESSKEY,SECRETKEY",
            "--addr", f"127.0.0.1:{program.port}", "--config", "/dev/null", "--vfs-cache-mode", "off",
            str(program.folder / "store")]


class Node(Program):
    """A `pipectl serve` with its links to Redis and the bucket."""

    def __init__(self, number, arguments, folder, redis, bucket):
        super().__init__(f"node {number}", folder, self.words)
        self.number, self.redis, self.bucket = number, redis, bucket
        self.binary, self.has_bucket = arguments.program, arguments.bucket

    def words(self, program):
        store = {"bucket": "cache", "endpoint": f"http://127.0.0.1:{self.bucket.port}", "accessKey": "ACCESSKEY",
                 "secretKey": "SECRETKEY"}
        settings = [
            "allowUnsigned=true", "allowPrivateAddresses=true", "retries=0", 'server.trustedProxies=["127.0.0.1"]',
            "server.playground=false", "render.workers=1", f"adminToken={TOKEN}", f"fleet.seconds={RELIES}",
            f"fleet.redis=redis://127.0.0.1:{self.redis.port}", "remote.seconds=0.5"]
        if self.has_bucket:
            settings.append(f"remote.s3={json.dumps(store)}")
        command = [self.binary, "serve", "--listen", f"127.0.0.1:{self.port}", "--cache", str(self.folder / "cache")]
        return command + [word for setting in settings for word in ("--set", setting)]

    def is_away(self, sent):
        """Whether it may not have heard of purges when a request was sent, since it cannot reach Redis."""
        return self.redis.state != "open" or sent < self.redis.repaired + RELIES

    @property
    def is_reachable(self):
        return self.process is not None and self.process.poll() is None


class PlainClient(fleet.Client):
    async def open(self):
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)


async def exchanged(port, target, is_plain, method="GET", body=b"", fields=(), on_sent=lambda: None):
    """The answer to one request on a connection of its own; nil if there is none. Calls `on_sent` once the request is sent or has failed."""
    client = (PlainClient if is_plain else fleet.Client)(port)

    async def exchange():
        await client.open()
        lines = "".join(f"{name}: {value}\r\n" for name, value in fields)
        length = f"Content-Length: {len(body)}\r\n" if body else ""
        head = f"{method} {target} HTTP/1.1\r\nHost: images.example.org\r\nConnection: close\r\n{length}{lines}\r\n"
        client.writer.write(head.encode() + body)
        await client.writer.drain()
        on_sent()
        return await client.receive()
    try:
        return await asyncio.wait_for(exchange(), PATIENCE)
    except (OSError, EOFError, asyncio.TimeoutError, AssertionError, ValueError, IndexError):
        return None
    finally:
        on_sent()
        client.close()


class Run:
    """What is asked and purged, and what the answers show."""

    def __init__(self, arguments, origin, nodes, redis, bucket):
        self.origin, self.nodes, self.redis, self.bucket = origin, nodes, redis, bucket
        self.is_strict, self.has_bucket = arguments.strict, arguments.bucket
        self.random = random.Random(arguments.seed)
        self.proxy, self.fault, self.begun, self.isEnding = None, "nothing", time.monotonic(), False
        # Of each key, the confirmed purges: when, and the version from then on.
        self.confirmed = {key: [] for key in KEYS}
        self.counts = collections.Counter()
        self.older = []
        self.locks = {key: asyncio.Lock() for key in KEYS}

    def says(self, text):
        print(f"{time.monotonic() - self.begun:6.1f} s  {text}", flush=True)

    # Purging

    async def purge(self, node, keys, kind):
        """Changes pictures of one group, and purges them."""
        for key in keys:
            self.origin.versions[key] += 1
        versions = {key: self.origin.versions[key] for key in keys}
        group = keys[0][0]
        fields = [("Authorization", f"Bearer {TOKEN}")]
        if kind == "source":
            target = "/source/" + fleet.encoded(self.origin.source(keys[0]))
            answer = await exchanged(node.port, target, True, "DELETE", fields=fields)
        else:
            what = {"prefixes": [f"{self.origin.base}/g{group}/"]} if kind == "prefix" else {"tags": [f"g{group}"]}
            body = json.dumps(what | {"mode": "hard"}).encode()
            fields.append(("Content-Type", "application/json"))
            answer = await exchanged(node.port, "/purge", True, "POST", body, fields)
        now = time.monotonic()
        if answer is None or answer[0] != 200:
            self.counts["purges failed"] += 1
            return False
        if b"unconfirmed" in answer[2]:
            self.counts["purges unconfirmed"] += 1
            return False
        self.counts[f"purges confirmed, by {kind}"] += 1
        for key, version in versions.items():
            self.confirmed[key].append((now, version, node.number, kind))
        return True

    def a_purge(self):
        kind = self.random.choices(["source", "prefix", "tag"], [6, 2, 2])[0]
        group = self.random.randrange(GROUPS)
        keys = [(group, member) for member in range(MEMBERS)]
        return ([self.random.choice(keys)] if kind == "source" else keys), kind

    async def purges(self):
        while not self.isEnding:
            node = self.random.choice(self.nodes)
            if node.is_reachable:
                await self.purge(node, *self.a_purge())
            await asyncio.sleep(0.15)

    # Asking

    def check(self, key, sent, version, node, fields):
        """Compares an answer with the purges that were confirmed before its request was sent."""
        before = [purge for purge in self.confirmed[key] if purge[0] <= sent]
        needed = max(before, key=lambda purge: purge[1], default=None)
        if needed is None or version >= needed[1]:
            return True
        missed = [purge for purge in before if purge[1] > version]
        first = min(missed)
        if self.has_bucket and all(purge[3] == "tag" for purge in missed):
            self.counts["older answers, by tag from the bucket"] += 1
            return True
        if sent - first[0] < RELIES:
            self.counts["older answers, node relies"] += 1
            return True
        if node is not None and node.is_away(sent) and not self.is_strict:
            self.counts["older answers, node away"] += 1
            return True
        age = sent - first[0]
        name = f"node {node.number}" if node else "a node"
        self.older.append(self.fault)
        if self.older.count(self.fault) <= 5:
            self.says(
                f"OLDER  {name} answers {key} with version {version}, {age:.1f} s after the purge of {first[1]} by "
                f"{first[3]} at node {first[2]} was confirmed; {self.fault}; {fields.get('cache-status', '')}")
        return False

    async def ask(self, key, node=None, on_sent=lambda: None):
        source = fleet.encoded(self.origin.source(key))
        target = self.random.choice(
            [f"/variant/unsigned/thumbnail:8,png/{source}", f"/variant/unsigned/thumbnail:6,png/{source}",
             f"/original/unsigned/{source}"])
        sent = time.monotonic()
        was_away = [other.is_away(sent) for other in self.nodes]
        answer = await exchanged(node.port if node else self.proxy.port, target, node is not None, on_sent=on_sent)
        if answer is None or answer[0] != 200:
            self.counts["requests failed"] += 1
            return None
        if node is None:
            port = answer[1].get("x-node", "").split(":")[-1].split(",")[-1].strip()
            node = next((other for other in self.nodes if str(other.port) == port), None)
        self.counts["answers"] += 1
        try:
            version = version_of(answer[2])
        except (zlib.error, struct.error, KeyError, IndexError):
            self.counts["answers that are no picture"] += 1
            return None
        if node is not None and was_away[node.number] and not self.is_strict:
            # It was cut when the request was sent, and may be repaired by now.
            before = [purge for purge in self.confirmed[key] if purge[0] <= sent]
            if any(purge[1] > version for purge in before):
                self.counts["older answers, node away"] += 1
            return True
        return self.check(key, sent, version, node, answer[1])

    async def asks(self, number):
        while not self.isEnding:
            key = self.random.choice(KEYS)
            await self.ask(key, self.nodes[number] if number < NODES else None)
            await asyncio.sleep(0.03)

    # Faults

    def a_node(self):
        return self.random.choice(self.nodes)

    async def wipe(self):
        reader, writer = await asyncio.open_connection("127.0.0.1", self.redis.port)
        writer.write(b"FLUSHALL\r\n")
        await reader.readline()
        writer.close()

    async def redis_loses_its_first_purges(self):
        """Before anything else was purged: a node is killed, one is cut off, the third purges, Redis is emptied."""
        killed, cut, other = self.random.sample(self.nodes, 3)
        for node in (killed, cut):
            for key in KEYS:
                await self.ask(key, node)
        killed.kill()
        cut.redis.cut("refuses")
        for key in KEYS[:MEMBERS]:
            await self.purge(other, [key], "source")
        await self.wipe()
        cut.redis.repair()
        await killed.start()
        await asyncio.sleep(2 * RELIES)
        for _ in range(10):
            for key in KEYS[:MEMBERS]:
                for node in (killed, cut):
                    await self.ask(key, node)
            await asyncio.sleep(0.05)

    async def resume(self, node):
        """Requests wait for the node already."""
        sent = {key: asyncio.Event() for key in KEYS}
        asked = [asyncio.create_task(self.ask(key, node, sent[key].set)) for key in KEYS]
        for event in sent.values():
            await event.wait()
        node.signal(signal.SIGCONT)
        await asyncio.gather(*asked)

    async def a_node_is_killed(self):
        node = self.a_node()
        node.kill()
        await asyncio.sleep(self.random.uniform(0, 1.5))
        await node.start()

    async def a_node_is_stopped(self):
        node = self.a_node()
        node.signal(signal.SIGSTOP)
        await asyncio.sleep(self.random.uniform(RELIES, 3))
        await self.resume(node)

    async def a_node_is_stopped_while_redis_is_emptied(self):
        node = self.a_node()
        node.signal(signal.SIGSTOP)
        await asyncio.sleep(1)
        await self.wipe()
        await asyncio.sleep(self.random.uniform(0, 2))
        await self.resume(node)

    async def a_node_is_stopped_and_loses_its_connections(self):
        node = self.a_node()
        node.signal(signal.SIGSTOP)
        await self.cut([node.redis], 0.3)
        await asyncio.sleep(self.random.uniform(2 * RELIES, 3))
        await self.resume(node)

    async def redis_is_emptied(self):
        await self.wipe()

    async def redis_is_killed(self):
        self.redis.kill()
        for node in self.nodes:
            node.redis.cut("refuses")
        await asyncio.sleep(self.random.uniform(0, 2))
        await self.redis.start()
        for node in self.nodes:
            node.redis.repair()

    async def cut(self, links, seconds):
        """Each link refuses connections or goes silent."""
        for link in links:
            link.cut(self.random.choice(["refuses", "silent"]))
        await asyncio.sleep(seconds)
        for link in links:
            link.repair()

    async def a_node_is_cut_from_redis(self):
        # Long enough for long pauses between its attempts.
        await self.cut([self.a_node().redis], self.random.uniform(1, 6))

    async def all_nodes_are_cut_from_redis(self):
        await self.cut([node.redis for node in self.nodes], self.random.uniform(1, 4))

    async def a_node_is_cut_from_redis_while_it_is_emptied(self):
        link = self.a_node().redis
        link.cut("refuses")
        await asyncio.sleep(1)
        await self.wipe()
        await asyncio.sleep(self.random.uniform(0, 2))
        link.repair()

    async def a_node_is_cut_from_the_bucket(self):
        await self.cut([self.a_node().bucket], self.random.uniform(1, 3))

    async def the_bucket_is_killed(self):
        self.bucket.kill()
        await asyncio.sleep(self.random.uniform(0.5, 2))
        await self.bucket.start()

    async def a_node_is_cut_from_everything(self):
        node = self.a_node()
        await self.cut([node.redis, node.bucket], self.random.uniform(1, 4))

    def faults(self, only):
        named = [name for name in vars(Run) if name.startswith(("a_node_", "redis_is", "all_nodes", "the_bucket"))]
        return [name for name in named if only in name and (self.has_bucket or "the_bucket" not in name)]


async def repaired(run):
    """Every node has heard of everything, and answers with what was purged last."""
    end = time.monotonic() + REPAIR
    last = {key: max(purges, key=lambda purge: purge[1])[1] for key, purges in run.confirmed.items() if purges}
    for node in run.nodes:
        while True:
            answer = await exchanged(node.port, "/ready", True)
            if answer and b'"connected":true' in answer[2]:
                break
            fleet.expect(time.monotonic() < end, f"node {node.number} does not hear of purges again: {answer}")
            await asyncio.sleep(0.1)
    await asyncio.sleep(2 * RELIES)
    run.fault = "everything is repaired"
    for node in run.nodes:
        for key in last:
            await run.ask(key, node)


async def run(arguments, work):
    # Programs and links are stopped while the loop still runs.
    with contextlib.ExitStack() as stack:
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        return await measured(arguments, work, stack)


async def measured(arguments, work, stack):
    origin = Origin()
    stack.callback(origin.stop)
    redis = Program("Redis", work / "redis", redis_command)
    bucket = Program("the bucket", work / "bucket", bucket_command)
    for program in (redis, bucket) if arguments.bucket else (redis,):
        stack.callback(program.kill)
        await program.start()
    nodes = []
    for number in range(NODES):
        links = [await Link(program.port).start() for program in (redis, bucket)]
        for link in links:
            stack.callback(link.stop)
        nodes.append(Node(number, arguments, work / f"node-{number}", *links))
        stack.callback(nodes[-1].kill)
        await nodes[-1].start()
    certificate = str(work / "certificate.pem")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
         "-subj", "/CN=images.example.org", "-keyout", certificate + ".key", "-out", certificate + ".crt"],
        check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    pathlib.Path(certificate).write_text(
        pathlib.Path(certificate + ".crt").read_text() + pathlib.Path(certificate + ".key").read_text())
    change = [("proxy_read_timeout 120s;", "proxy_read_timeout 3s; add_header X-Node $upstream_addr always;")]
    if arguments.proxy == "haproxy":
        change = [("    option httpchk GET /ready\n",
                   "    option httpchk GET /ready\n    http-response set-header X-Node %[srv_id]:%[dst_port]\n")]
    proxy = fleet.Proxy(arguments.proxy, work / "proxy", nodes, certificate, change)
    stack.callback(proxy.stop)
    await proxy.ready()

    state = Run(arguments, origin, nodes, redis, bucket)
    state.proxy = proxy
    state.fault = "redis_loses_its_first_purges"
    if arguments.only in state.fault:
        await state.redis_loses_its_first_purges()
        state.says(state.fault)
    work_tasks = [asyncio.create_task(state.asks(number)) for number in range(NODES + 3)]
    work_tasks += [asyncio.create_task(state.purges()) for _ in range(2)]
    end = state.begun + arguments.seconds
    queue = []
    faults = state.faults(arguments.only)
    while faults and time.monotonic() < end:
        if not queue:
            queue = list(faults)
            state.random.shuffle(queue)
        state.fault = queue.pop()
        before = len(state.older)
        await getattr(state, state.fault)()
        # Longer than a node's pauses between attempts.
        await asyncio.sleep(2.5)
        state.says(f"{state.fault}: {len(state.older) - before} answers too old")
        for task in work_tasks:
            fleet.expect(not task.done(), "a client has ended")
    state.isEnding = True
    await asyncio.gather(*work_tasks)
    await repaired(state)
    return state


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", metavar="PIPECTL")
    parser.add_argument("--seconds", type=float, default=60, help="for faults; starting and repairing come on top")
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    parser.add_argument("--proxy", choices=["nginx", "haproxy"], default="nginx")
    parser.add_argument("--only", default="", metavar="FAULT")
    parser.add_argument("--strict", action="store_true", help="nodes without Redis may not answer with older pictures")
    parser.add_argument("--no-bucket", dest="bucket", action="store_false")
    arguments = parser.parse_args()
    arguments.program = os.path.abspath(arguments.program)
    # Unwinds, so that the programs are killed and the folder is removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    print(f"seed {arguments.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="fleet-", ignore_cleanup_errors=True) as work:
        state = asyncio.run(run(arguments, pathlib.Path(work)))
    for name, count in sorted(state.counts.items()):
        print(f"{count:7} {name}")
    if state.older:
        print(f"{len(state.older):7} answers older than a confirmed purge:")
        for fault, count in collections.Counter(state.older).most_common():
            print(f"{count:7}   {fault}")
        sys.exit(1)
    fleet.expect(state.counts["answers"] > 0, "nothing was answered")
    print("no answer was older than a confirmed purge")


if __name__ == "__main__":
    main()
