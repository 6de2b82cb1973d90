"""Looks at the built site as a reader does: each page at the width of a phone and of a desk, in light and in dark.

    site_test.py SITE [--pictures FOLDER]

Nothing may ask another host, no page may be wider than the window or report an error, and the URL builder must sign what
samples/signers/vectors.tsv has. Needs playwright and Debian's chromium (scripts/install-dependencies chromium).
"""
import functools
import http.server
import pathlib
import re
import sys
import threading

from playwright.sync_api import expect, sync_playwright

site = pathlib.Path(sys.argv[1]).resolve()
pictures = pathlib.Path(sys.argv[3]) if sys.argv[2:3] == ["--pictures"] else None
vectors = pathlib.Path(__file__).resolve().parents[2] / "samples/signers/vectors.tsv"
pages = sorted(page.relative_to(site).as_posix() for page in site.glob("*.html") if page.name != "404.html")


class Files(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Files, directory=site))
threading.Thread(target=server.serve_forever, daemon=True).start()
host = f"http://127.0.0.1:{server.server_port}/"
problems = []


def look(page, name, words):
    response = page.goto(host + name, wait_until="load")
    if response.status != 200:
        problems.append(f"{name}: {response.status}")
    wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    if wide > 0:
        problems.append(f"{name}, {words}: {wide} px wider than the window")
    broken = page.evaluate("""() => [...document.images].filter(i => i.complete && !i.naturalWidth && !/jxl|tiff/.test(i.src)).map(i => i.src)""")
    problems.extend(f"{name}: {image} is not shown" for image in broken)
    if pictures:
        page.screenshot(path=pictures / f"{name.removesuffix('.html')}-{words.replace(' ', '-')}.png")


def shows(page, url):
    try:
        expect(page.locator("#url")).to_have_text(url)
    except AssertionError:
        problems.append(f"builder: {page.text_content('#url') or page.text_content('#problems')} instead of {url}")


def build(page):
    """The URL builder: the vectors, by its own functions and by its form."""
    page.goto(host + "builder.html")
    for line in vectors.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        key, hexadecimal, expiry, route, *segments, path = line.split("\t")
        page.select_option("[name=route]", route)
        if route == "variant":
            page.fill("[name=steps]", segments[0])
        for field, value in (("base", ""), ("source", segments[-1]), ("keyID", key), ("key", hexadecimal),
                             ("expiry", "" if expiry == "-" else expiry)):
            page.fill(f"[name={field}]", value)
        shows(page, path)
    page.fill("[name=steps]", "thumbnial:300")
    expect(page.locator("#problems")).to_contain_text("“thumbnail”")
    page.reload()
    page.select_option("[name=add]", label="blur")
    page.select_option("[name=output]", "webp")
    page.fill("[name=arguments]", "max=20kB")
    shows(page, "http://127.0.0.1:8080/variant/unsigned/thumbnail:300x200:fill,rounded-mask:24,blur:2.5,webp:max=20kB/"
          "https:%2F%2Fexample.org%2Fphoto.jpg")
    if len(re.findall(r" [123]x", page.text_content("#tag"))) != 3:
        problems.append(f"builder: {page.text_content('#tag')}")


with sync_playwright() as playwright:
    browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
    for scheme in ("light", "dark"):
        for width, height in ((390, 844), (1280, 900)):
            page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
            page.on("request", lambda request: request.url.startswith((host, "data:", "blob:"))
                    or problems.append(f"{page.url}: asks {request.url}"))
            page.on("pageerror", lambda error: problems.append(f"{page.url}: {error}"))
            for name in pages:
                look(page, name, f"{width} {scheme}")
            if (scheme, width) == ("light", 390):
                build(page)
            page.close()
    browser.close()
for problem in sorted(set(problems)):
    print(problem, file=sys.stderr)
print(f"{len(pages)} pages at two widths, in light and dark")
sys.exit(1 if problems else 0)
