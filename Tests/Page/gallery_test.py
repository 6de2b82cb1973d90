#!/usr/bin/env python3
"""A contact sheet in a browser: `gallery_test.py SHEET CARDS`.

SHEET is a sheet that `pipectl batch --gallery` wrote, CARDS the number of its cards. The page must load, with the pictures
in sight decoded and painted, load no picture that is far away, and load the last one once it is scrolled to.
"""
import contextlib
import os
import pathlib
import sys
import time

from playwright.sync_api import sync_playwright

# Asking each card where it is would have the browser lay out all of them.
SEEN = """async () => {
    const cards = await new Promise((done) => {
        const observer = new IntersectionObserver((entries) => {
            observer.disconnect();
            done(entries.filter((entry) => entry.isIntersecting).map((entry) => entry.target));
        });
        for (const card of document.querySelectorAll("figure")) observer.observe(card);
    });
    await Promise.all(cards.map((card) => card.querySelector("img").decode()));
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    return cards.length;
}"""
LAST = "() => [...document.images].filter((image) => image.src.endsWith('last.webp'))[0]"


def main():
    path = pathlib.Path(sys.argv[1]).resolve()
    with sync_playwright() as playwright, contextlib.closing(playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox"])) as browser:
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.goto("about:blank")
        began = time.monotonic()
        page.goto(path.as_uri())
        assert page.evaluate(SEEN) > 0
        opened = time.monotonic() - began
        cards = page.locator("figure").count()
        last = page.evaluate_handle(LAST)
        assert not last.evaluate("image => image.complete && image.naturalWidth > 0"), "loaded before it came into view"
        began = time.monotonic()
        last.evaluate("image => image.scrollIntoView()")
        page.wait_for_function("image => image.complete && image.naturalWidth > 0", arg=last, timeout=30_000)
        scrolled = time.monotonic() - began
        first = page.evaluate("document.querySelector('.counts').getBoundingClientRect().top < "
                              "document.querySelector('section').getBoundingClientRect().top")
    print(f"{cards} cards in {os.path.getsize(path):,} bytes; opened in {opened:.2f} s, at its end after {scrolled:.2f} s")
    assert cards == int(sys.argv[2]), cards
    assert first, "the counts are not above the cards"
    assert opened < 20, opened
    print("done", flush=True)


main()
