#!/usr/bin/env python3
"""The page's folders in a browser: `folder_test.py SERVER [PICTURES]`.

SERVER is the address of a running `pipectl serve FOLDER`; FOLDER has `a.jpg` (320 pixels or more wide), `notes.txt`, `2026/ö b.webp`,
250 files in `many`, and in `kinds` the pictures `a2.jpg` and `a10.jpg`, a damaged `cut.jpg`, a `fake.jpg` of text and a `logo.svg`. Screenshots are written into the folder PICTURES.
Needs playwright and Debian's chromium (scripts/install-dependencies chromium).
"""
import contextlib
import re
import sys

from playwright.sync_api import expect, sync_playwright

expect.set_options(timeout=60_000)


def browses(page, server, pictures, width):
    troubles = []
    # The browser reports each answer that is an error by itself.
    page.on("console", lambda message: troubles.append(message.text) if message.type in ("error", "warning")
            and not any(text in message.text for text in ("415", "422")) else None)
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.goto(server + "/")
    # The folder is what the page begins with.
    expect(page.get_by_role("link", name="Folders")).to_have_attribute("aria-current", "page")
    tiles = page.locator("#folder-entries .tile")
    expect(tiles).to_have_text(["2026", "a.jpg", "kinds", "many", re.compile("TXT.*not a picture.*notes.txt$")])
    page.wait_for_function("() => [...document.querySelectorAll('#folder-entries img')].some((i) => i.naturalWidth > 0)")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    if pictures:
        page.screenshot(path=f"{pictures}/folder-{width}.png")

    tiles.get_by_text("2026").click()
    expect(page.locator("#folder-path a")).to_have_text(["pictures", "2026"])
    expect(tiles).to_have_text(["ö b.webp"])
    tiles.first.click()
    # One click: the controls with this picture.
    expect(page.locator("#picture-view")).to_be_visible()
    expect(page.locator("#source")).to_have_value("pictures:2026/%C3%B6%20b.webp")
    page.wait_for_function("() => document.getElementById('variant-image').naturalWidth > 0")
    expect(page.locator("#facts")).to_contain_text("webp")
    expect(page.locator("#snippet")).to_contain_text("pictures:2026%2F%25C3%25B6%2520b.webp")
    expect(page.locator("#recipe")).to_have_value("thumbnail:600x400,auto")
    expect(page.locator("#cache-sentence")).to_contain_text("the file in this folder")
    expect(page.locator("#cache-status")).not_to_contain_text("ttl")
    page.get_by_role("tab", name="pipectl").click()
    expect(page.locator("#snippet")).to_have_text(re.compile(
        r"# in the folder that this server calls pictures\npipectl get '2026/ö b.webp' .*-o 'ö b\.\w+'", re.S))
    page.get_by_role("tab", name="Swift").click()
    expect(page.locator("#snippet")).to_contain_text('for: "2026/ö b.webp"')
    if pictures:
        page.screenshot(path=f"{pictures}/opened-{width}.png")

    # Back to the folder it is from, and up.
    page.get_by_role("link", name="Folders").click()
    expect(tiles).to_have_text(["ö b.webp"])
    page.locator("#folder-path a").first.click()
    tiles.get_by_text("kinds").click()
    expect(tiles).to_have_text([
        "a2.jpg", "a10.jpg", re.compile("JPG.*damaged.*cut.jpg$"), re.compile("JPG.*not a picture.*fake.jpg$"),
        re.compile("SVG.*format not supported.*logo.svg$")])
    # The server of this test renders in its own process.
    expect(tiles.nth(4)).to_have_attribute("title", re.compile("only in render workers"))
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    if pictures:
        page.screenshot(path=f"{pictures}/kinds-{width}.png")
    page.locator("#folder-path a").first.click()
    tiles.get_by_text("many").click()
    expect(tiles).to_have_count(200)
    page.get_by_role("button", name="More").click()
    expect(tiles).to_have_count(250)
    expect(page.get_by_role("button", name="More")).to_be_hidden()
    assert troubles == [], troubles
    page.goto(server + "/#folder=pictures%3Anone")
    expect(page.locator("#folder-error")).to_contain_text("the file does not exist")


def main():
    server, pictures = sys.argv[1], (sys.argv[2:] or [None])[0]
    with sync_playwright() as playwright, contextlib.closing(playwright.chromium.launch(
            executable_path="/usr/bin/chromium",
            args=["--no-sandbox", "--disable-background-networking", "--disable-component-update",
                  "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--proxy-server=direct://"])) as browser:
        for width, scheme in ((1280, "light"), (390, "dark")):
            context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
            browses(context.new_page(), server, pictures, width)
            context.close()
            print("passed", width, flush=True)
    print("done", flush=True)


main()
