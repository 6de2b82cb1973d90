#!/usr/bin/env python3
"""A page with `next/image` in a browser: `next_test.py SERVER`.

SERVER is the address of a running `pipectl serve` with the grammar `next` at /_next/image, which has the application's picture
/photos/dunes 2mp.jpg (1600 pixels wide). The attributes are those that Next.js 15 and 16 write for a fixed size, for `fill` with
`sizes`, and for `priority`. Needs playwright and Debian's chromium (scripts/install-dependencies chromium).
"""
import sys
import urllib.parse

from playwright.sync_api import sync_playwright

DEVICES = [640, 750, 828, 1080, 1200, 1920, 2048, 3840]
IMAGES = [16, 32, 48, 64, 96, 128, 256, 384]
SIZES = "(max-width: 700px) 100vw, 33vw"


def url(server, width, quality=75):
    source = urllib.parse.quote("/photos/dunes 2mp.jpg", safe="")
    return f"{server}/_next/image?url={source}&w={width}&q={quality}"


def html(server):
    fixed = f"{url(server, 384)} 1x, {url(server, 750)} 2x"
    # With `sizes`, the smallest width is a third of the smallest device.
    fill = ", ".join(f"{url(server, width)} {width}w" for width in sorted(IMAGES + DEVICES) if width >= 640 * 0.33)
    return f"""<!doctype html><meta name=viewport content="width=device-width">
    <link rel=preload as=image imagesrcset="{fill}" imagesizes="{SIZES}" fetchpriority=high>
    <img id=fixed alt loading=lazy width=375 height=281 decoding=async srcset="{fixed}" src="{url(server, 750)}">
    <div style="position:relative;height:200px"><img id=fill alt decoding=async fetchpriority=high
      style="position:absolute;height:100%;width:100%;inset:0;color:transparent"
      sizes="{SIZES}" srcset="{fill}" src="{url(server, 3840)}"></div>"""


def main(server):
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        for scale, width, fixed, fill in [(1, 1000, 384, 384), (2, 1000, 750, 750), (3, 400, 750, 1200)]:
            page = browser.new_context(
                viewport={"width": width, "height": 800}, device_scale_factor=scale).new_page()
            types = []
            page.on("response", lambda response: types.append((response.status, response.headers.get("content-type"))))
            page.set_content(html(server))
            page.wait_for_function("() => [...document.images].every((i) => i.complete && i.naturalWidth > 0)", timeout=60_000)
            shown = page.evaluate(
                "() => Object.fromEntries([...document.images].map((i) => [i.id, [i.currentSrc, i.naturalWidth]]))")
            for name, expected in [("fixed", fixed), ("fill", fill)]:
                source, natural = shown[name]
                assert source == url(server, expected), (scale, name, source)
            # The preloaded picture is the one that is shown, so it is requested once.
            assert types and set(types) == {(200, "image/avif")}, types
            assert len(types) == len({fixed, fill}), types
            print(f"{width} pixels at {scale}x:", shown["fixed"][1], shown["fill"][1])
        browser.close()
    print("done")


main(sys.argv[1])
