#!/usr/bin/env python3
"""A contact sheet in a browser: `gallery_test.py SHEET CARDS`.

SHEET is the first page of a sheet that `pipectl batch --gallery` wrote, CARDS the number of cards on all of its pages. Each
page must be of at most 2 MB, and open in two seconds: loaded, and what is in sight decoded and painted.
"""
import contextlib
import os
import pathlib
import sys
import time
import urllib.parse

from playwright.sync_api import sync_playwright

SEEN = """async () => {
    const seen = [...document.images].filter((image) => image.getBoundingClientRect().top < innerHeight);
    await Promise.all(seen.map((image) => image.decode()));
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    return seen.length;
}"""


def main():
    url = pathlib.Path(sys.argv[1]).resolve().as_uri()
    cards, times = 0, []
    with sync_playwright() as playwright, contextlib.closing(playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox"])) as browser:
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.goto("about:blank")
        while url:
            size = os.path.getsize(urllib.parse.unquote(urllib.parse.urlsplit(url).path))
            assert size <= 2_000_000, f"{url}: {size} bytes"
            began = time.monotonic()
            page.goto(url)
            assert page.evaluate(SEEN) > 0
            times.append(time.monotonic() - began)
            cards += page.locator("figure").count()
            following = page.locator("nav a", has_text="next")
            url = following.last.evaluate("link => link.href") if following.count() else None
    print(f"{cards} cards on {len(times)} pages; opened in {times[0]:.2f} s, the slowest in {max(times):.2f} s", flush=True)
    assert cards == int(sys.argv[2]), cards
    assert max(times) < 2, times
    print("done", flush=True)


main()
