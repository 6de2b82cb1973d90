#!/usr/bin/env python3
"""Deep zoom in a browser: `zoom_test.py SERVICE [PICTURES]`.

SERVICE is the URL of an image of a running `pipectl serve` with the grammar `iiif`, without parameters. A page of another origin
reads info.json, shows all tiles of each level in `<img>`s, and draws them. The result must look like the picture of that size.
The page of the server shows URLs of the grammar. A screenshot is written into the folder PICTURES.
Needs playwright and Debian's chromium (scripts/install-dependencies chromium).
"""
import sys
import urllib.parse

from playwright.sync_api import expect, sync_playwright

# Returns the mean difference of each level, the number of tiles, and the size of the level.
WALK = """async (service) => {
  const info = await (await fetch(service + "/info.json")).json();
  const { width: edge, scaleFactors } = info.tiles[0];
  const load = async (path) => {
    const image = new Image();
    image.crossOrigin = "anonymous";
    image.src = `${info.id}/${path}/0/default.png`;
    document.body.append(image);
    await image.decode();
    return image;
  };
  const pixels = (width, height, draw) => {
    const canvas = Object.assign(document.createElement("canvas"), { width, height });
    const context = canvas.getContext("2d", { willReadFrequently: true });
    draw(context);
    return context.getImageData(0, 0, width, height).data;
  };
  const levels = [];
  for (const [index, factor] of [...scaleFactors].reverse().entries()) {
    const { width, height } = info.sizes[index];
    const tiles = [];
    for (let y = 0; y < info.height; y += edge * factor)
      for (let x = 0; x < info.width; x += edge * factor) {
        const [w, h] = [Math.min(edge * factor, info.width - x), Math.min(edge * factor, info.height - y)];
        tiles.push(load(`${x},${y},${w},${h}/${Math.ceil(w / factor)},${Math.ceil(h / factor)}`)
          .then((image) => ({ image, x: x / factor, y: y / factor })));
      }
    const loaded = await Promise.all(tiles);
    const whole = await load(`full/${width},${height}`);
    const [made, expected] = [
      pixels(width, height, (context) => loaded.forEach(({ image, x, y }) => context.drawImage(image, x, y))),
      pixels(width, height, (context) => context.drawImage(whole, 0, 0)),
    ];
    const sum = made.reduce((sum, value, index) => sum + Math.abs(value - expected[index]), 0);
    const isCovered = made.every((value, index) => index % 4 < 3 || value === 255);
    levels.push({ factor, width, height, tiles: loaded.length, mean: sum / made.length, isCovered });
  }
  return levels;
}"""


def shows_url(page, service):
    """The server's page shows the recipe as a URL of the grammar, and that URL works."""
    server, source = service.split("/iiif/3/")
    query = urllib.parse.urlencode({"recipe": "crop:300x200+40+50,thumbnail:150x100:stretch,flip:h,png",
                                    "source": urllib.parse.unquote(source)})
    page.goto(f"{server}/#{query}")
    page.get_by_role("tab", name="Other systems").click()
    url = f"{service}/40,50,300,200/150,100/!0/default.png"
    expect(page.locator("#snippet")).to_have_text(f"# iiif\n{url}")
    size = page.evaluate("async (url) => { const i = new Image(); i.src = url; await i.decode(); return i.naturalWidth; }", url)
    assert size == 150, size
    page.locator("#recipe").fill("circle,png")
    expect(page.locator("#snippet")).to_have_text("# iiif: `circle` cannot be expressed in a URL of iiif")
    if len(sys.argv) > 2:
        page.locator("#snippet").scroll_into_view_if_needed()
        page.screenshot(path=f"{sys.argv[2]}/systems.png")


def main(service):
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = browser.new_page()
        levels = page.evaluate(WALK, service)
        assert [level["factor"] for level in levels][-1] == 1 and levels[0]["tiles"] == 1, levels
        for level in levels:
            print(level)
            assert level["isCovered"], level
            # The resampler does not look beyond the edges of a tile.
            assert level["mean"] == 0 if level["factor"] == 1 else level["mean"] < 1, level
        shows_url(page, service)
        browser.close()
    print("done")


main(sys.argv[1])
