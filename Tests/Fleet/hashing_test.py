#!/usr/bin/env python3
"""Three nodes behind nginx and HAProxy that hash by source: `hashing_test.py PIPECTL [--proxy NAME] [--change OLD NEW]`.

PIPECTL is the built program. The proxies run with the files of deploy/ (nginx-fleet.conf, haproxy.cfg), in which addresses
and the paths of certificates alone are replaced; Caddy runs with Caddyfile in front of the first node. `--change` replaces
further texts, to see a check fail:

    --proxy nginx --change 'hash $image_source consistent' 'hash $request_uri consistent'
    --proxy haproxy --change 'balance hash var(txn.source)' 'balance hash path'
    --proxy nginx --change ' consistent;' ';'
    --proxy haproxy --change 'del-header Forwarded' 'del-header Nothing'
    --proxy caddy --change 'header_up -Forwarded' ''
    --proxy caddy --change 'respond @operators 404' ''

Needs Debian's nginx, haproxy and caddy (scripts/install-dependencies proxies) and openssl. Uses the loopback interface
only.
"""
import argparse
import asyncio
import base64
import collections
import contextlib
import ctypes
import hashlib
import hmac
import http.client
import http.server
import itertools
import json
import os
import pathlib
import pwd
import random
import re
import resource
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import zlib

DEPLOY = pathlib.Path(__file__).resolve().parents[2] / "deploy"
KEY = bytes(range(32))
# Of a cold variant at once; `--clients` changes it.
CLIENTS = 200
SOURCES = 300
NODES = 3
# For whatever is waited for, in seconds; nothing is expected to take as long.
BOUND = 120
checks = []


def check(action):
    """Registers a check; its name is printed when it has passed."""
    checks.append(action)
    return action


class Skipped(Exception):
    """Why a check does not apply to a proxy."""


def expect(claim, message):
    if not claim:
        raise AssertionError(message)


async def until(condition, what):
    """Polls until the condition is true."""
    end = time.monotonic() + BOUND
    while True:
        value = condition()
        if value:
            return value
        expect(time.monotonic() < end, f"waited {BOUND} s in vain: {what}")
        await asyncio.sleep(0.05)


def picture(path):
    """A PNG of 24 × 24 pixels with the path in it: variants of equal originals would be shared."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + bytes(range(3 * row, 3 * row + 72)) for row in range(24))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 24, 24, 8, 2, 0, 0, 0))
            + chunk(b"tEXt", b"Comment\0" + path.encode()) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def free_port():
    """Below the ports that Linux gives to clients: none of them takes it while its server is away."""
    while True:
        port = random.randrange(10_000, 32_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


class Origin:
    """Answers every path with a picture, counts requests, and holds those below /held until it is told to go on."""

    def __init__(self):
        self.requests = collections.Counter()
        self.lock = threading.Lock()
        self.gate = threading.Event()
        origin = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                with origin.lock:
                    origin.requests[self.path] += 1
                if self.path.startswith("/held"):
                    origin.gate.wait(BOUND)
                body = picture(self.path)
                self.send_response(200)
                self.send_header("Content-Type", "image/png")
                self.send_header("Content-Length", str(len(body)))
                self.send_header("Cache-Control", "max-age=3600")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *arguments):
                pass

        class Server(http.server.ThreadingHTTPServer):
            request_queue_size = 1024

        self.server = Server(("127.0.0.1", 0), Handler)
        self.base = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def count(self, path):
        with self.lock:
            return self.requests[path]

    def stop(self):
        self.gate.set()
        self.server.shutdown()
        self.server.server_close()


def started(command, **arguments):
    """Starts a program that the kernel terminates if this one dies."""
    library = ctypes.CDLL(None)
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, preexec_fn=lambda: library.prctl(1, signal.SIGTERM), **arguments)


def ended(process, with_signal=signal.SIGTERM):
    """Signals a program, if it runs, and waits; kills it if it takes too long."""
    if process is None:
        return
    if process.poll() is None:
        process.send_signal(with_signal)
        try:
            process.wait(BOUND)
        except subprocess.TimeoutExpired:
            process.kill()
    process.wait()


class Node:
    """A `pipectl serve` with a cache folder of its own."""

    def __init__(self, program, folder, origin):
        self.program, self.folder, self.origin = program, folder, origin
        self.port, self.process, self.read = free_port(), None, 0
        folder.mkdir()

    async def start(self):
        errors = self.folder / "errors"
        settings = [
            "allowUnsigned=true", "allowPrivateAddresses=true", "retries=0", 'server.trustedProxies=["127.0.0.1"]',
            "server.accessLog=json", "server.connections=4096", "render.workers=1", "limits.seconds=60",
            "fetch.headerSeconds=120", "fetch.stallSeconds=120", "fetch.totalSeconds=120", "server.idleSeconds=120",
            f'baseURLs={{"photos":"{self.origin.base}/photos"}}']
        command = [self.program, "serve", "--listen", f"127.0.0.1:{self.port}", "--cache", str(self.folder / "cache")]
        for setting in settings:
            command += ["--set", setting]
        with open(errors, "wb") as stderr, open(self.folder / "access", "ab") as stdout:
            self.process = started(command, stdout=stdout, stderr=stderr, env={
                "PATH": os.environ.get("PATH", ""), "HOME": str(self.folder),
                "PIPECTL_KEYS": json.dumps({"web": KEY.hex()})})

        def listens():
            text = errors.read_text(errors="replace")
            expect(self.process.poll() is None, f"the node ended: {text}")
            return f"listening on http://127.0.0.1:{self.port}" in text

        await until(listens, "a node that listens")

    def stop(self, with_signal=signal.SIGTERM):
        ended(self.process, with_signal)
        self.process = None

    def answered(self):
        """The lines of the access log since the last call."""
        with open(self.folder / "access", "rb") as log:
            log.seek(self.read)
            lines = log.read()
        lines = lines[:lines.rfind(b"\n") + 1]
        self.read += len(lines)
        return [json.loads(line) for line in lines.splitlines()]

    def renders(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=BOUND)
        with contextlib.closing(connection):
            connection.request("GET", "/metrics", headers={"Host": "localhost"})
            answer = connection.getresponse()
            text = answer.read().decode()
        expect(answer.status == 200, f"/metrics: {answer.status} {text}")
        found = re.search(r'^image_pipeline_stage_seconds_count\{stage="render"\} (\d+)', text, re.M)
        return int(found[1]) if found else 0


class Proxy:
    """nginx, HAProxy or Caddy with the file of deploy/."""

    FILES = {"nginx": "nginx-fleet.conf", "haproxy": "haproxy.cfg", "caddy": "Caddyfile"}

    def __init__(self, name, folder, nodes, certificate, change, without=None):
        self.name, self.folder, self.nodes, self.certificate, self.change = name, folder, nodes, certificate, change
        folder.mkdir()
        self.port = free_port()
        file = self.FILES[name]
        text = (DEPLOY / file).read_text()
        addresses = [(f"10.0.0.{11 + index}:8080", f"127.0.0.1:{node.port}") for index, node in enumerate(nodes)]
        replacements = {
            "nginx": addresses + [
                ("listen 443 ", f"listen 127.0.0.1:{self.port} "), ("/etc/ssl/images.example.org.pem", certificate),
                ("/etc/ssl/images.example.org.key", certificate),
            ],
            "haproxy": addresses + [
                ("bind :443 ", f"bind 127.0.0.1:{self.port} "), ("/etc/haproxy/images.example.org.pem", certificate),
            ],
            # With a certificate it asks no authority for one.
            "caddy": [
                ("images.example.org {", f"{{\n\tadmin off\n\tauto_https off\n}}\nhttps://:{self.port} {{\n"
                 f"\tbind 127.0.0.1\n\ttls {certificate} {certificate}"),
                ("unix//run/pipectl/http.sock", f"127.0.0.1:{nodes[0].port}"),
            ],
        }[name]
        for old, new in replacements + change:
            expect(old in text, f"{file} does not have {old}")
            text = text.replace(old, new)
        if without:
            expect(without in text, f"{file} does not have {without}")
            text = text.replace(without + "\n", "")
        (folder / "fleet.conf").write_text(text)
        if name == "nginx":
            paths = "".join(
                f"{kind}_temp_path {folder}/{kind};\n"
                for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
            user = f"user {pwd.getpwuid(0).pw_name};\n" if os.geteuid() == 0 else ""
            (folder / "main.conf").write_text(
                f"{user}daemon off;\nworker_processes 2;\npid {folder}/pid;\nerror_log {folder}/errors;\n"
                "events { worker_connections 4096; }\n"
                f"http {{ access_log off;\n{paths}include {folder}/fleet.conf;\n}}\n")
            command = ["nginx", "-e", str(folder / "errors"), "-p", str(folder), "-c", str(folder / "main.conf")]
        elif name == "caddy":
            command = ["caddy", "run", "--adapter", "caddyfile", "--config", str(folder / "fleet.conf")]
        else:
            (folder / "main.conf").write_text("global\n    maxconn 4096\n")
            command = ["haproxy", "-db", "-f", str(folder / "main.conf"), "-f", str(folder / "fleet.conf")]
        self.output = folder / "output"
        with open(self.output, "wb") as output:
            path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
            self.process = started(command, stdout=output, stderr=output, env={"PATH": path, "HOME": str(folder)})

    async def ready(self):
        def listens():
            expect(self.process.poll() is None, f"{self.name} ended: {self.output.read_text()}")
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", self.port)) == 0
        await until(listens, f"{self.name} that listens")

    async def without_first(self):
        """Another one whose file does not name the first node."""
        text = (self.folder / "fleet.conf").read_text()
        line = next(line for line in text.splitlines() if f"127.0.0.1:{self.nodes[0].port}" in line)
        folder = self.folder.with_name(self.folder.name + "-without-first")
        proxy = Proxy(self.name, folder, self.nodes, self.certificate, self.change, without=line)
        await proxy.ready()
        return proxy

    def stop(self):
        ended(self.process)


class Client:
    """A connection to the proxy, kept open."""

    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE

    def __init__(self, port, address="127.0.0.1"):
        self.port, self.address, self.writer = port, address, None

    async def open(self):
        self.reader, self.writer = await asyncio.open_connection(
            "127.0.0.1", self.port, ssl=self.context, local_addr=(self.address, 0))

    async def send(self, target, fields=()):
        if self.writer is None:
            await self.open()
        lines = "".join(f"{name}: {value}\r\n" for name, value in fields)
        self.writer.write(f"GET {target} HTTP/1.1\r\nHost: images.example.org\r\n{lines}\r\n".encode())
        await self.writer.drain()

    async def receive(self):
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        fields = {}
        for line in head[1:-2]:
            name, _, value = line.partition(":")
            fields[name.lower()] = value.strip()
        status = int(head[0].split(" ")[1])
        if "content-length" in fields:
            body = await self.reader.readexactly(int(fields["content-length"]))
        else:
            expect(fields.get("transfer-encoding") == "chunked", f"an answer without a length: {head}")
            body = b""
            while size := int(await self.reader.readline(), 16):
                body += await self.reader.readexactly(size)
                await self.reader.readline()
            await self.reader.readline()
        if fields.get("connection", "").lower() == "close":
            self.close()
        return status, fields, body

    async def get(self, target, fields=()):
        await self.send(target, fields)
        return await asyncio.wait_for(self.receive(), BOUND)

    def close(self):
        if self.writer is not None:
            self.writer.transport.abort()
            self.writer = None


def encoded(text, safe=""):
    return urllib.parse.quote(text, safe=safe)


def unsigned(route, *segments):
    return "/" + "/".join((route, "unsigned") + segments)


def signed(route, *segments, expiry=None):
    """docs/signing.md; the segments are encoded already."""
    rest = "".join("/" + segment for segment in segments) + (f"?exp={expiry}" if expiry else "")
    code = hmac.new(KEY, f"/{route}{rest}".encode(), hashlib.sha256).digest()
    return f"/{route}/web.{base64.urlsafe_b64encode(code).rstrip(b'=').decode()}{rest}"


class Fleet:
    """The nodes behind one proxy."""

    rounds = itertools.count()

    def __init__(self, origin, nodes, proxy):
        self.origin, self.nodes, self.proxy = origin, nodes, proxy

    async def get_all(self, targets, connections=16):
        """Asks for all targets and returns which node answered each; every answer must be a 200."""
        mark = f"round-{next(self.rounds)}-request-"
        rest = list(enumerate(targets))

        async def work():
            client = Client(self.proxy.port)
            try:
                while rest:
                    number, target = rest.pop()
                    status, _, body = await client.get(target, [("User-Agent", mark + str(number))])
                    expect(status == 200, f"{target}: {status} {body[:300]}")
            finally:
                client.close()

        done = await asyncio.gather(*(work() for _ in range(connections)), return_exceptions=True)
        for error in filter(None, done):
            raise error
        return await self.homes(mark, len(targets))

    def lines(self):
        return [(number, line) for number, node in enumerate(self.nodes) for line in node.answered()]

    async def homes(self, mark, count):
        """Which node answered the requests 0..<count of a round, by the access logs."""
        found = {}

        def all_found():
            for number, line in self.lines():
                agent = line.get("userAgent", "")
                if agent.startswith(mark):
                    found[int(agent.removeprefix(mark))] = number
            return len(found) == count

        await until(all_found, f"the access logs, {count} requests")
        return [found[number] for number in range(count)]

    def renders(self):
        return sum(node.renders() for node in self.nodes)

    def connections(self):
        """Open connections to the nodes (`/proc/net/tcp`)."""
        ports = {f"{node.port:04X}" for node in self.nodes}
        with open("/proc/net/tcp", encoding="ascii") as table:
            rows = [line.split() for line in table.readlines()[1:]]
        return sum(row[3] == "01" and row[1].split(":")[1] in ports for row in rows)


async def crowd(fleet, path):
    """1,000 clients ask for one cold variant; the origin answers when all requests are at the nodes."""
    origin = fleet.origin
    origin.gate.clear()
    before = fleet.renders()
    target = unsigned("variant", "thumbnail:16,png", encoded(origin.base + path))
    clients = [Client(fleet.proxy.port) for _ in range(CLIENTS)]
    try:
        places = asyncio.Semaphore(64)

        async def asks(client):
            async with places:
                await client.send(target)

        await asyncio.gather(*(asks(client) for client in clients))
        await until(lambda: fleet.connections() >= CLIENTS, f"{CLIENTS} requests at the nodes")
        await until(lambda: origin.count(path) >= 1, "a fetch")
        origin.gate.set()
        answers = await asyncio.wait_for(asyncio.gather(*(client.receive() for client in clients)), BOUND)
    finally:
        origin.gate.set()
        for client in clients:
            client.close()
    statuses = collections.Counter(status for status, _, _ in answers)
    expect(statuses == {200: CLIENTS}, f"statuses {dict(statuses)}")
    expect(len({body for _, _, body in answers}) == 1, "bodies differ")
    coalesced = sum("collapsed" in fields.get("cache-status", "") for _, fields, _ in answers)
    return origin.count(path), fleet.renders() - before, coalesced


@check
async def one_fetch_and_one_render_for_many_clients(fleet):
    fetches, renders, coalesced = await crowd(fleet, f"/held/{fleet.proxy.name}/1.png")
    expect((fetches, renders) == (1, 1), f"{fetches} fetches and {renders} renders")
    return f"{CLIENTS} clients, {fetches} fetch, {renders} render, {coalesced} coalesced"


@check
async def all_recipes_of_a_source_go_to_one_node(fleet):
    figures = collections.Counter()
    renders = 0
    for number in range(20):
        path = f"/recipes/{fleet.proxy.name}/{number}.png"
        source = encoded(fleet.origin.base + path)
        recipes = [f"thumbnail:{size},png" for size in (8, 10, 12, 14)]
        recipes += ["circle,webp", "thumbnail:20x10:fill,jpeg:85"]
        targets = [unsigned("variant", encoded(recipe), source) for recipe in recipes]
        targets += [signed("variant", recipe, source) for recipe in recipes]
        targets += [signed("variant", recipes[0], source, expiry=4_000_000_000 + number)]
        others = [unsigned("original", source), signed("original", source), signed("info", source)]
        # Variants first: a cold original and a cold variant at the same moment are a fetch each, on one node too.
        before = fleet.renders()
        homes = set(await fleet.get_all(targets))
        renders += fleet.renders() - before
        # `/info` renders, too.
        homes |= set(await fleet.get_all(others))
        expect(len(homes) == 1, f"{path}: nodes {homes}")
        expect(fleet.origin.count(path) == 1, f"{path}: {fleet.origin.count(path)} fetches")
        figures[homes.pop()] += 1
    expect(len(figures) > 1, f"20 sources went to nodes {dict(figures)}")
    expect(renders == 20 * len(recipes), f"{renders} renders of {len(recipes)} recipes of 20 sources")
    return f"20 sources, {len(recipes)} recipes and {len(targets + others)} URLs each, 20 fetches, {renders} renders"


@check
async def the_spelling_of_a_source_makes_no_difference(fleet):
    base = fleet.origin.base
    for number in range(12):
        name = f"/spelt/{fleet.proxy.name}/a b{number}.png?v={number}"
        url = base + name.replace(" ", "%20")
        forms = [encoded(url), encoded(url, safe=":,=@~"), encoded(url).replace("%2F", "%2f"), encoded(url, safe=":&=")]
        if fleet.proxy.name != "nginx":
            forms.append("b64:" + base64.urlsafe_b64encode(url.encode()).rstrip(b"=").decode())
        targets = [unsigned("variant", "thumbnail:8,png", form) for form in forms]
        targets += [signed("variant", "circle,png", form) for form in forms]
        homes = set(await fleet.get_all(targets))
        expect(len(homes) == 1, f"{url}: nodes {homes}")
        path = name.replace(" ", "%20")
        expect(fleet.origin.count(path) == 1, f"{path}: {fleet.origin.count(path)} fetches")
    # `b64:` by itself is a text like any other: every recipe of it goes to one node.
    form = "b64:" + base64.urlsafe_b64encode(f"{base}/spelt/{fleet.proxy.name}/1.png".encode()).rstrip(b"=").decode()
    recipes = ["thumbnail:8,png", "thumbnail:9,png", "circle,webp"]
    named = ["sample:dusk", "sample:meadow", "sample:balloon", "photos:cats%2F1.png", "photos:cats%2f2.png"]
    for source in named + [form]:
        targets = [unsigned("variant", recipe, source) for recipe in recipes]
        targets += [signed("variant", "thumbnail:8,png", source, expiry=4_000_000_000)]
        homes = set(await fleet.get_all(targets))
        expect(len(homes) == 1, f"{source}: nodes {homes}")
    return ""


async def leaves(fleet, leaving, with_signal):
    """What 300 sources do when a node leaves and comes back, while clients ask on."""
    base = f"{fleet.origin.base}/moves/{fleet.proxy.name}"
    targets = [unsigned("variant", "thumbnail:8,png", encoded(f"{base}/{number}.png")) for number in range(SOURCES)]
    before = await fleet.get_all(targets)
    shares = collections.Counter(before)
    expect(min(shares[node] for node in range(NODES)) > SOURCES // 6, f"shares {dict(shares)}")
    statuses = collections.Counter()
    stopped = asyncio.Event()

    async def ask_on(first):
        client = Client(fleet.proxy.port)
        number = first
        try:
            while not stopped.is_set():
                status, _, _ = await client.get(targets[number % SOURCES])
                statuses[status] += 1
                number += 7
        finally:
            client.close()

    load = [asyncio.create_task(ask_on(first)) for first in range(2)]
    try:
        await until(lambda: sum(statuses.values()) >= 100, "requests beside")
        node = fleet.nodes[leaving]
        await asyncio.to_thread(node.stop, with_signal)
        during = await fleet.get_all(targets)
        moved = [number for number in range(SOURCES) if during[number] != before[number]]
        expect(all(before[number] == leaving for number in moved), "sources of the nodes that stayed have moved")
        expect(len(moved) == shares[leaving], f"{len(moved)} moved, the node had {shares[leaving]}")
        expect(len({during[number] for number in moved}) == NODES - 1, "its share has not been divided")
        await node.start()
        end = time.monotonic() + BOUND
        while set(await fleet.get_all([targets[number] for number in moved[:10]])) != {leaving}:
            expect(time.monotonic() < end, "its sources have not come back")
        after = await fleet.get_all(targets)
        away = sum(after[number] != before[number] for number in range(SOURCES))
        expect(away == 0, f"{away} sources have another node than before")
    finally:
        stopped.set()
        done = await asyncio.gather(*load, return_exceptions=True)
    expect(not any(done), f"requests beside failed: {done}")
    expect(set(statuses) == {200}, f"requests beside: {dict(statuses)}")
    return f"{len(moved)} of {SOURCES} moved and came back, {statuses[200]} requests meanwhile, none failed"


@check
async def a_node_that_stops_moves_its_share(fleet):
    return await leaves(fleet, 0, signal.SIGTERM)


@check
async def a_node_that_is_killed_moves_its_share(fleet):
    return await leaves(fleet, 2, signal.SIGKILL)


@check
async def a_node_that_is_taken_out_of_the_file_moves_its_share(fleet):
    base = f"{fleet.origin.base}/moves/{fleet.proxy.name}"
    targets = [unsigned("variant", "thumbnail:8,png", encoded(f"{base}/{number}.png")) for number in range(SOURCES)]
    before = await fleet.get_all(targets)
    other = await fleet.proxy.without_first()
    try:
        after = await Fleet(fleet.origin, fleet.nodes, other).get_all(targets)
    finally:
        other.stop()
    moved = [number for number in range(SOURCES) if after[number] != before[number]]
    share = before.count(0)
    expect(len(moved) == share, f"{len(moved)} moved, the node had {share}")
    return f"{len(moved)} of {SOURCES} moved"


@check
async def a_node_that_hangs_moves_its_share_if_it_is_checked(fleet):
    if fleet.proxy.name == "nginx":
        raise Skipped("nginx asks no node by itself")
    base = f"{fleet.origin.base}/moves/{fleet.proxy.name}"
    targets = [unsigned("variant", "thumbnail:8,png", encoded(f"{base}/{number}.png")) for number in range(60)]
    before = await fleet.get_all(targets)
    node = fleet.nodes[1]
    target = targets[before.index(1)]
    waiting = []
    node.process.send_signal(signal.SIGSTOP)
    try:
        end = time.monotonic() + BOUND
        while True:
            expect(time.monotonic() < end, "its sources have no other node")
            client = Client(fleet.proxy.port)
            task = asyncio.create_task(client.get(target))
            waiting.append((client, task))
            if (await asyncio.wait([task], timeout=1))[0]:
                expect(task.result()[0] == 200, f"status {task.result()[0]}")
                break
    finally:
        node.process.send_signal(signal.SIGCONT)
        answers = await asyncio.gather(*(task for _, task in waiting), return_exceptions=True)
        for client, _ in waiting:
            client.close()
    # What waited meanwhile is answered in the end.
    statuses = [answer if isinstance(answer, BaseException) else answer[0] for answer in answers]
    expect(set(statuses) == {200}, f"answers {statuses}")
    end = time.monotonic() + BOUND
    while await fleet.get_all(targets) != before:
        expect(time.monotonic() < end, "its sources have not come back")
    return ""


@check
async def the_nodes_learn_who_asks_and_operators_paths_are_closed(fleet):
    # Another address than the proxy's: what names it is what the proxy says.
    client = Client(fleet.proxy.port, "127.0.0.2")
    try:
        for path in ["/metrics", "/ready", "/purge", "/source/http%3A%2F%2Fa%2Fb.jpg"]:
            status, _, _ = await client.get(path)
            expect(status == 404, f"{path}: {status}")
        for path in ["//metrics", "/%6Detrics", "/x/../metrics"]:
            status, _, body = await client.get(path)
            expect(status in (400, 403, 404) and b"image_pipeline" not in body, f"{path}: {status}")
        forged = [("X-Forwarded-For", "203.0.113.9"), ("Forwarded", "for=203.0.113.9"), ("User-Agent", "forged")]
        status, _, _ = await client.get(unsigned("variant", "thumbnail:8,png", "sample:dusk"), forged)
        expect(status == 200, f"forged fields: {status}")
        lines = []

        def logged():
            lines.extend(line for _, line in fleet.lines() if line.get("userAgent") == "forged")
            return lines

        await until(logged, "a line of the access log")
        expect(lines[0]["client"] == "127.0.0.2", f"the client is {lines[0]['client']}")
    finally:
        client.close()
    return ""


with_one_node = [
    one_fetch_and_one_render_for_many_clients, the_spelling_of_a_source_makes_no_difference,
    the_nodes_learn_who_asks_and_operators_paths_are_closed,
]


async def without_hashing(fleet):
    fetches, renders, _ = await crowd(fleet, f"/held/{fleet.proxy.name}/2.png")
    expect((fetches, renders) == (NODES, NODES), f"{fetches} fetches and {renders} renders")
    path = f"/recipes/{fleet.proxy.name}/1000.png"
    recipes = [f"thumbnail:{size},png" for size in (8, 10, 12, 14)]
    target = [unsigned("variant", recipe, encoded(fleet.origin.base + path)) for recipe in recipes]
    before = fleet.renders()
    for _ in range(NODES):
        for each in target:
            await fleet.get_all([each] * NODES, connections=1)
    again = fleet.renders() - before
    expect((fleet.origin.count(path), again) == (NODES, NODES * len(recipes)), f"{fleet.origin.count(path)}, {again}")
    return (f"{CLIENTS} clients, {fetches} fetches, {renders} renders; "
            f"{len(recipes)} recipes of a source, {NODES} fetches, {again} renders")


async def run(arguments, work, stack):
    certificate = str(work / "certificate.pem")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
         "-subj", "/CN=images.example.org", "-keyout", certificate + ".key", "-out", certificate + ".crt"],
        check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    pathlib.Path(certificate).write_text(
        pathlib.Path(certificate + ".crt").read_text() + pathlib.Path(certificate + ".key").read_text())
    origin = Origin()
    stack.callback(origin.stop)
    nodes = []
    for number in range(NODES):
        node = Node(arguments.program, work / f"node-{number}", origin)
        stack.callback(node.stop)
        await node.start()
        nodes.append(node)
    failed = 0

    async def passes(action, fleet, name):
        nonlocal failed
        try:
            figures = await action(fleet)
            print(f"passed {name}" + (f": {figures}" if figures else ""), flush=True)
        except Skipped as reason:
            print(f"skipped {name}: {reason}", flush=True)
        except (AssertionError, OSError, EOFError, asyncio.TimeoutError) as error:
            failed += 1
            print(f"failed {name}: {error!r}\n{fleet.proxy.output.read_text()}", flush=True)
        for node in nodes:
            if node.process is None:
                await node.start()

    for name in arguments.proxy or Proxy.FILES:
        proxy = Proxy(name, work / name, nodes, certificate, arguments.change)
        stack.callback(proxy.stop)
        await proxy.ready()
        for action in with_one_node if name == "caddy" else checks:
            await passes(action, Fleet(origin, nodes, proxy), f"{name} {action.__name__}")
        proxy.stop()
        if arguments.change or name == "caddy":
            continue
        change = [("hash $image_source consistent;", "")] if name == "nginx" else [
            ("balance hash var(txn.source)", "balance roundrobin")]
        proxy = Proxy(name, work / (name + "-round-robin"), nodes, certificate, change)
        stack.callback(proxy.stop)
        await proxy.ready()
        await passes(without_hashing, Fleet(origin, nodes, proxy), f"{name} {without_hashing.__name__}")
        proxy.stop()
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", metavar="PIPECTL")
    parser.add_argument("--proxy", action="append", choices=list(Proxy.FILES), help="this one alone")
    parser.add_argument(
        "--change", nargs=2, action="append", default=[], metavar=("OLD", "NEW"),
        help="replaces a text of the proxy's file")
    parser.add_argument("--clients", type=int, default=CLIENTS, help="of a cold variant at once (default 200)")
    arguments = parser.parse_args()
    globals()["CLIENTS"] = arguments.clients
    arguments.program = os.path.abspath(arguments.program)
    # Each client is three descriptors: its own and two of the proxy, in other processes that inherit the limit.
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard if hard == resource.RLIM_INFINITY else max(soft, hard), hard))
    # Unwinds, so that the programs are stopped and the folder is removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="fleet-") as work, contextlib.ExitStack() as stack:
        failed = asyncio.run(run(arguments, pathlib.Path(work), stack))
    if failed:
        sys.exit(f"{failed} checks failed")
    print("done")


if __name__ == "__main__":
    main()
