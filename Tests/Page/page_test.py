#!/usr/bin/env python3
"""The page in a browser: `page_test.py SERVER ORIGIN [--token TOKEN] [--pictures FOLDER]`.

SERVER is the address of a running `pipectl serve` with `allowUnsigned`, `sources.deny` of `denied.test` and the preset `card`, `thumbnail:90x60:fill,jpeg:60`, TOKEN its `adminToken`, ORIGIN that of a server which has
`dunes-2mp.jpg` and `meadow.tiff` of samples/originals. With `--pictures` screenshots are written into a folder.
Needs playwright and Debian's chromium (scripts/install-dependencies chromium).
"""
import argparse
import contextlib
import re
import sys
import time
import urllib.parse

from playwright.sync_api import expect, sync_playwright

TIMEOUT = 60_000
expect.set_options(timeout=TIMEOUT)
checks = []


def check(action):
    """Registers a check; its name is printed when it has passed."""
    checks.append(action)
    return action


class Visit:
    """A page in a window of its own, and what it did that it should not."""

    def __init__(self, browser, server, token=None, width=1440, height=900, scheme="light", touch=False):
        self.server = server
        self.token = token
        self.context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, has_touch=touch,
            permissions=["clipboard-read", "clipboard-write"])
        self.context.set_default_timeout(TIMEOUT)
        self.page = self.context.new_page()
        self.troubles = []
        self.expected = []
        self.page.on("console", self.told)
        self.page.on("pageerror", lambda error: self.troubles.append(f"exception: {error}"))
        self.page.on("request", self.asked)

    def told(self, message):
        # The browser reports each answer that is an error by itself.
        if message.type in ("error", "warning") and not any(text in message.text for text in self.expected):
            self.troubles.append(f"console: {message.text}")

    def asked(self, request):
        if not request.url.startswith((self.server + "/", "blob:" + self.server)):
            self.troubles.append(f"a request left the host: {request.url}")

    def open(self, recipe=None, source=None):
        state = {key: value for key, value in (("recipe", recipe), ("source", source)) if value is not None}
        self.page.goto(self.server + "/" + ("#" + urllib.parse.urlencode(state) if state else ""))
        return self.page

    def facts(self, name):
        return self.page.locator("#facts tr", has=self.page.get_by_role("rowheader", name=name)).locator("td")

    def recipe(self):
        return self.page.locator("#recipe")


def add(page, step):
    page.locator("#add-step").fill(step)
    page.keyboard.press("Enter")


def shows(page, image, width):
    page.wait_for_function(
        "([id, width]) => { const i = document.getElementById(id); return i.complete && i.naturalWidth === width; }",
        arg=[image, width])


@check
def pictures_decode(visit, origin):
    page = visit.open()
    shows(page, "variant-image", 600)
    expect(visit.facts("dimensions").nth(0)).to_have_text("960 × 540")
    expect(visit.facts("dimensions").nth(1)).to_have_text("600 × 400")
    expect(visit.facts("dimensions").nth(2)).to_have_text("600 × 400")
    expect(page.locator("#timings li")).not_to_have_count(0)
    for label, width in (("Meadow", 640), ("Balloon", 240)):
        page.get_by_text(label, exact=True).click()
        expect(visit.facts("dimensions").nth(0)).to_have_text(re.compile(f"^{width} × "))
    page.get_by_label("or the URL of a picture").fill(origin + "/dunes-2mp.jpg")
    page.get_by_role("button", name="Load").click()
    expect(visit.facts("dimensions").nth(0)).to_have_text(re.compile("^1600 × "))
    expect(page.locator("#cache-status")).to_contain_text("pipeline;")
    # A browser shows no TIFF: the server makes a picture of it.
    page.get_by_label("or the URL of a picture").fill(origin + "/meadow.tiff")
    page.keyboard.press("Enter")
    expect(visit.facts("dimensions").nth(0)).to_have_text(re.compile("^400 × "))
    expect(visit.facts("format").nth(0)).to_have_text("tiff")


@check
def every_step_has_a_form_and_works(visit, origin):
    page = visit.open("png", "sample:balloon")
    shows(page, "variant-image", 240)
    entries = page.evaluate("""async () => {
        const own = document.querySelector("script[type=module]").src;
        const { Catalogue, exampleStep, stepText } = await import(new URL("grammar.js", own));
        const { root } = await import(new URL("answer.js", own));
        const catalogue = new Catalogue(await (await fetch(new URL("page/catalogue.json", root))).json());
        return catalogue.entries.map((entry) => {
            const step = exampleStep(entry, catalogue);
            return { ...entry, text: stepText(step), kinds: step.slots?.map((slot) => slot.kind) ?? null };
        });
    }""")
    assert len(entries) > 30, len(entries)
    offered = page.locator("#step-names option").evaluate_all("options => options.map((option) => option.value)")
    outputs = page.locator("#output select.format option").evaluate_all("all => all.map((option) => option.value)")
    for entry in entries:
        name = entry["name"]
        assert entry["kinds"] is not None, f"{name}: the grammar {entry['grammar']} gives no form"
        assert entry["text"] in entry["example"].split(","), f"{name}: {entry['example']} becomes {entry['text']}"
        arguments = len(re.findall(r":(?!\w*\])", entry["grammar"]))
        assert len(entry["kinds"]) >= min(arguments, 1), f"{name}: {entry['kinds']} for {entry['grammar']}"
        assert name in (outputs if entry["role"] == "output" else offered), f"{name} is not offered"
    visit.expected += ["400 (Bad Request)", "404 (Not Found)"]
    for entry in (entry for entry in entries if entry["role"] != "output"):
        page.locator("#recipe").fill("png")
        add(page, entry["name"])
        expect(visit.recipe()).to_have_value(f"{entry['text']},png")
        card = page.locator(f"li[data-step='{entry['name']}']")
        expect(card.locator(".fields .field")).to_have_count(len([kind for kind in entry["kinds"] if kind != "constant"]))
        failure = page.locator("#failure")
        page.wait_for_function("() => location.hash.includes(encodeURIComponent('%s'))" % entry["text"])
        expect(page.locator("#stage")).not_to_have_attribute("aria-busy", "true")
        if entry["name"] == "overlay":
            expect(failure).to_contain_text("missing-mask")
        elif entry["name"] == "page":
            expect(failure).to_contain_text("there is no page 2; 1 can be selected")
        else:
            expect(failure).to_be_hidden()


@check
def controls_change_the_recipe(visit, origin):
    page = visit.open("thumbnail:300x200:fill,webp", "sample:dusk")
    shows(page, "variant-image", 300)
    card = page.locator("li[data-step=thumbnail]")
    card.get_by_label("thumbnail size width").fill("240")
    expect(visit.recipe()).to_have_value("thumbnail:240x200:fill,webp")
    shows(page, "variant-image", 240)
    card.get_by_label("thumbnail gravity").select_option("north-east")
    card.get_by_label("up", exact=True).check()
    expect(visit.recipe()).to_have_value("thumbnail:240x200:fill:up:gravity=north-east,webp")
    add(page, "rounded-mask")
    rounded = page.locator("li[data-step=rounded-mask]")
    rounded.get_by_label("rounded-mask radius, unit").select_option("")
    rounded.get_by_label("radius", exact=True).fill("30")
    expect(visit.recipe()).to_have_value("thumbnail:240x200:fill:up:gravity=north-east,rounded-mask:30,webp")
    add(page, "tint")
    page.get_by_label("tint colour, colour picker").fill("#336699")
    expect(visit.recipe()).to_have_value(
        "thumbnail:240x200:fill:up:gravity=north-east,rounded-mask:30,tint:336699,webp")
    page.get_by_label("Move up tint").click()
    expect(page.get_by_label("Move up tint")).to_be_focused()
    page.get_by_label("use rounded-mask").uncheck()
    expect(visit.recipe()).to_have_value("thumbnail:240x200:fill:up:gravity=north-east,tint:336699,webp")
    page.get_by_label("format", exact=True).select_option("jpeg")
    page.get_by_label("quality", exact=True).fill("40")
    page.get_by_label("progressive").check()
    page.get_by_label("jpeg keep icc").check()
    page.get_by_label("Remove tint").click()
    page.get_by_label("Remove rounded-mask").click()
    expect(visit.recipe()).to_have_value("thumbnail:240x200:fill:up:gravity=north-east,jpeg:40:progressive:keep=icc")
    expect(visit.facts("format").nth(2)).to_have_text("jpeg")
    # The address holds it all.
    page.wait_for_function("() => location.hash.includes('progressive')")
    page.reload()
    expect(visit.recipe()).to_have_value("thumbnail:240x200:fill:up:gravity=north-east,jpeg:40:progressive:keep=icc")
    shows(page, "variant-image", 240)


@check
def errors_show(visit, origin):
    visit.expected += ["400 (Bad Request)", "403 (Forbidden)", "404 (Not Found)", "502 (Bad Gateway)"]
    page = visit.open("thumbnail:300,webp", "sample:meadow")
    shows(page, "variant-image", 300)
    visit.recipe().fill("thumbnail:300,blurr:2,webp")
    failure = page.get_by_role("alert")
    expect(failure).to_contain_text("did you mean `blur`")
    expect(failure).to_contain_text("urn:image-pipeline:problem:invalid-recipe")
    expect(page.locator("li[data-step=blurr]")).to_have_class(re.compile("faulty"))
    page.locator("li[data-step=blurr]").get_by_label("step as text").fill("blur:2")
    expect(failure).to_be_hidden()
    page.get_by_label("or the URL of a picture").fill(origin + "/nothing.jpg")
    page.keyboard.press("Enter")
    expect(failure).to_contain_text("404")
    # This machine's clients are operators.
    page.get_by_label("or the URL of a picture").fill("http://denied.test/a.jpg")
    page.keyboard.press("Enter")
    expect(failure).to_contain_text("matches `denied.test` in `sources.deny`")
    page.get_by_text("Meadow", exact=True).click()
    expect(failure).to_be_hidden()


@check
def load_measures_the_server(visit, origin):
    page = visit.open("thumbnail:78,webp", origin + "/dunes-2mp.jpg")
    shows(page, "variant-image", 78)
    expect(page.locator("#cache-status")).not_to_contain_text("detail=memory")
    page.get_by_role("button", name="Load").click()
    expect(page.locator("#cache-status")).to_contain_text("detail=memory")


@check
def old_figures_are_dimmed(visit, origin):
    page = visit.open("thumbnail:79,webp", "sample:meadow")
    shows(page, "variant-image", 79)
    panels, stage = page.locator("#panels"), page.locator("#stage")
    expect(panels).not_to_have_class(re.compile("stale"))
    held = []
    page.route("**/original/**", lambda route: held.append(route))
    page.get_by_label("or the URL of a picture").fill(origin + "/dunes-2mp.jpg")
    page.keyboard.press("Enter")
    for place in (panels, stage):
        expect(place).to_have_class(re.compile("stale"))
    # Each in its own time: opacity changes gradually.
    expect(page.locator("#panels > section").first).to_have_css("opacity", "0.45")
    expect(page.locator("#variant-image")).to_have_css("opacity", "0.45")
    held[0].continue_()
    expect(visit.facts("dimensions").nth(0)).to_have_text(re.compile("^1600 × "))
    for place in (panels, stage):
        expect(place).not_to_have_class(re.compile("stale"))


@check
def every_letter_of_a_step_is_kept(visit, origin):
    page = visit.open("thumbnail:80,webp", "sample:meadow")
    shows(page, "variant-image", 80)
    page.get_by_label("Add a step").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Escape")
    page.keyboard.type("blur")
    expect(page.get_by_label("Add a step")).to_have_value("blur")
    expect(visit.recipe()).to_have_value("thumbnail:80,webp")
    page.keyboard.press("Enter")
    expect(visit.recipe()).to_have_value("thumbnail:80,blur:2.5,webp")
    # The beginning is enough.
    page.get_by_label("Add a step").focus()
    page.keyboard.type("graysc")
    page.keyboard.press("Enter")
    expect(visit.recipe()).to_have_value("thumbnail:80,blur:2.5,grayscale,webp")


def boxes(page):
    return [page.locator(f"#{name}-image").bounding_box() for name in ("against", "variant")]


@check
def the_divider_compares_with_png_aligned_at_every_width(visit, origin):
    page = visit.open("thumbnail:300x200:fill,webp:40", "sample:dusk")
    for width in (1440, 1100, 981, 700, 400, 333):
        page.set_viewport_size({"width": width, "height": 850})
        shows(page, "against-image", 300)
        shows(page, "variant-image", 300)
        page.wait_for_timeout(50)
        one, other = boxes(page)
        assert one == other and one["width"] > 50, (width, one, other)
    expect(page.locator("#against-title")).to_have_text("as PNG")
    expect(page.locator("#saved")).to_have_text(re.compile("fewer bytes than the same recipe as PNG"))
    bytes_of = page.evaluate("""async () => Promise.all(["png:lossless", "webp:40"].map(async (output) =>
        (await (await fetch(`variant/unsigned/thumbnail:300x200:fill,${output}/sample:dusk`)).blob()).size))""")
    expect(page.locator("#saved")).to_contain_text(f"{round((1 - bytes_of[1] / bytes_of[0]) * 100)} %")
    # The original has another shape: it lies beside.
    page.get_by_label("Compare with").select_option("original")
    shows(page, "against-image", 960)
    expect(page.locator("#stage")).to_have_attribute("data-layout", "beside")


@check
def pixels_are_hard_and_can_be_panned(visit, origin):
    page = visit.open("thumbnail:900,webp", "sample:dusk")
    shows(page, "variant-image", 900)
    image = page.locator("#variant-image")
    for name, width in (("1:1", 900), ("2:1", 1800), ("8:1", 7200)):
        page.get_by_role("tab", name=name).click()
        assert round(image.bounding_box()["width"]) == width, (name, image.bounding_box())
        expect(image).to_have_css("image-rendering", "pixelated")
    page.get_by_role("tab", name="Fit").click()
    stage = page.locator("#stage").bounding_box()
    assert image.bounding_box()["width"] <= stage["width"]
    page.get_by_role("tab", name="2:1").click()
    before = image.bounding_box()
    page.mouse.move(stage["x"] + 200, stage["y"] + 200)
    page.mouse.down()
    page.mouse.move(stage["x"] + 150, stage["y"] + 170, steps=3)
    page.mouse.up()
    one, other = boxes(page)
    assert one == other and (other["x"], other["y"]) == (before["x"] - 50, before["y"] - 30), (before, other)
    page.locator("#stage").focus()
    page.keyboard.press("ArrowRight")
    assert image.bounding_box()["x"] == other["x"] - 40
    page.keyboard.press("+")
    assert round(image.bounding_box()["width"]) == 3600


@check
def two_variants_bytes_scores_and_download(visit, origin):
    page = visit.open("thumbnail:300,webp:90", "sample:meadow")
    expect(visit.facts("score").nth(2)).to_contain_text("dB")
    page.get_by_role("button", name="Keep").click()
    slider = page.get_by_label("webp quality, slider")
    slider.fill("20")
    expect(visit.recipe()).to_have_value("thumbnail:300,webp:20")
    expect(page.locator("#saved")).to_have_text(re.compile("^[1-9][0-9] % fewer bytes than the kept variant"))
    page.get_by_role("tab", name="Side by side").click()
    shows(page, "against-image", 300)
    expect(page.locator(".against figcaption")).to_have_text("Kept: thumbnail:300,webp:90")
    expect(page.locator("#output-bytes")).to_contain_text("dB")
    expect(visit.facts("score").nth(2)).not_to_have_text(visit.facts("score").nth(1).inner_text())
    scores = [visit.facts("score").nth(at).inner_text() for at in (1, 2)]
    psnr, ssim = zip(*(map(float, re.findall(r"[0-9.]+", text)) for text in scores))
    assert psnr[0] > psnr[1] + 3 and ssim[0] > ssim[1], scores
    expect(page.locator("#output-bytes")).to_contain_text(visit.facts("bytes").nth(2).inner_text())
    with page.expect_download() as download:
        page.get_by_role("link", name="Download the variant").click()
    assert download.value.suggested_filename == "meadow.webp"
    # A budget has a slider too.
    page.get_by_label("webp max, slider").fill("5")
    expect(visit.recipe()).to_have_value("thumbnail:300,webp:20:max=5kB")
    # So does a score.
    visit.recipe().fill("thumbnail:300,webp:score=70")
    page.get_by_label("webp score, slider").fill("60")
    expect(visit.recipe()).to_have_value("thumbnail:300,webp:score=60")
    visit.recipe().fill("thumbnail:300,png")
    expect(visit.facts("score").nth(2)).to_have_text("identical")


@check
def scores_are_those_of_their_definitions(visit, origin):
    page = visit.open("thumbnail:80,webp", "sample:meadow")
    found = page.evaluate("""async () => {
        const own = document.querySelector("script[type=module]").src;
        const { compared } = await import(new URL("score.js", own));
        const grey = (value) => new Uint8ClampedArray(16 * 8 * 4).map((_, at) => at % 4 === 3 ? 255 : value);
        return [compared(grey(100), grey(110), 16, 8), compared(grey(100), grey(100), 16, 8).ssim];
    }""")
    assert abs(found[0]["psnr"] - 28.1308) < 0.001, found
    assert abs(found[0]["ssim"] - (2 * 100 * 110 + 6.5025) / (100**2 + 110**2 + 6.5025)) < 1e-6, found
    assert abs(found[1] - 1) < 1e-9, found


@check
def a_crop_and_a_focus_point_are_drawn(visit, origin):
    page = visit.open("thumbnail:200x200:fill:gravity=attention,webp", "sample:dusk")
    shows(page, "variant-image", 200)
    page.get_by_role("button", name="Crop").click()
    shows(page, "against-image", 960)
    box = page.locator("#against-image").bounding_box()
    at = lambda x, y: page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"])  # noqa: E731
    at(0.25, 0.5)
    page.mouse.down()
    at(0.6, 0.8)
    at(0.75, 1)
    page.mouse.up()
    match = re.match(r"crop:(\d+)x(\d+)\+(\d+)\+(\d+),thumbnail", visit.recipe().input_value())
    assert match, visit.recipe().input_value()
    for number, wanted in zip(map(int, match.groups()), (480, 270, 240, 270)):
        assert abs(number - wanted) <= 4, match.groups()
    frame = page.locator("#drawn-crop").bounding_box()
    assert abs(frame["x"] - box["x"] - 0.25 * box["width"]) < 3 and abs(frame["width"] - box["width"] / 2) < 4, frame
    page.get_by_role("button", name="Focus").click()
    at(0.5, 0.75)
    page.mouse.down()
    page.mouse.up()
    match = re.search(r"thumbnail:200x200:fill:focus=([0-9.]+)x([0-9.]+),webp", visit.recipe().input_value())
    assert match and all(abs(float(share) - 0.5) < 0.02 for share in match.groups()), visit.recipe().input_value()
    expect(page.locator("#drawn-focus")).to_be_visible()
    # By the keyboard what lies in the middle is taken, and the form moves it.
    visit.recipe().fill("thumbnail:200x200:fill,webp")
    page.get_by_role("button", name="Crop").focus()
    page.keyboard.press("Enter")
    expect(visit.recipe()).to_have_value("crop:480x270+240+135,thumbnail:200x200:fill,webp")


@check
def masks_and_overlays_are_listed_with_pictures(visit, origin):
    page = visit.open("thumbnail:200,png", "sample:meadow")
    add(page, "mask")
    masks = page.get_by_role("group", name="masks")
    expect(masks.get_by_role("button")).to_have_text(["blob", "star", "vignette"])
    page.wait_for_function("() => [...document.querySelectorAll('.pictures img')].every((image) => image.naturalWidth === 96)")
    masks.get_by_role("button", name="blob").click()
    expect(visit.recipe()).to_have_value(re.compile("mask:blob"))
    expect(masks.get_by_role("button", name="blob")).to_have_attribute("aria-pressed", "true")


@check
def widths_are_what_srcset_says(visit, origin):
    page = visit.open("crop:800x500+10+20,thumbnail:300x200:fill,webp", "sample:dusk")
    shows(page, "variant-image", 300)
    page.get_by_role("tab", name="HTML").click()
    expect(page.locator("#snippet")).to_contain_text('sizes="(max-width: 300px) 100vw, 300px"')
    found = re.findall(r"(http\S+) (\d+)w", page.locator("#snippet").inner_text())
    assert [int(width) for _, width in found] == [150, 300, 450, 600], found
    for url, width in found:
        natural = page.evaluate("""async (url) => {
            const image = new Image(); image.src = url; await image.decode(); return image.naturalWidth; }""", url)
        assert natural == int(width), (url, natural)


@check
def every_browser_gets_a_format_that_it_shows(visit, origin):
    page = visit.open("thumbnail:300x200:fill,auto:70", "sample:dusk")
    shows(page, "variant-image", 300)
    page.get_by_role("tab", name="<picture>").click()
    markup = page.locator("#snippet").inner_text()
    found = page.evaluate("""async (markup) => {
        const picture = new DOMParser().parseFromString(markup, "text/html").querySelector("picture");
        const kinds = [];
        for (const part of picture.children) {
            for (const text of (part.srcset || part.getAttribute("src")).split(/,\\s+/)) {
                const [url, width] = text.trim().split(/\\s+/);
                const answer = await fetch(url);
                const bitmap = await createImageBitmap(await answer.blob());
                kinds.push([part.localName, part.type ?? "", answer.headers.get("content-type"), bitmap.width, width ?? ""]);
            }
        }
        return kinds;
    }""", markup)
    # The original is a WebP, so that is what browsers without AVIF and WebP are given last.
    for name, wanted, sent, natural, width in found:
        assert name == "img" or wanted == sent and width == f"{natural}w", found
    assert {kind[1] for kind in found} >= {"image/avif", "image/webp"} and found[-1][0] == "img", found
    # A format that the recipe names is the last resort.
    visit.recipe().fill("thumbnail:300x200:fill,jpeg:40")
    expect(visit.facts("format").nth(2)).to_have_text("jpeg")
    expect(page.locator("#snippet")).to_contain_text("thumbnail:300x200:fill,avif/")
    expect(page.locator("#snippet")).to_contain_text("thumbnail:300x200:fill,jpeg:40/")
    # So is a preset that has one; the other formats are made of its steps.
    visit.recipe().fill("@card")
    expect(page.locator("#snippet")).to_contain_text("thumbnail:90x60:fill,avif/")
    expect(page.locator("#snippet")).to_contain_text("/@card/")
    expect(visit.facts("dimensions").nth(2)).to_have_text("90 × 60")


@check
def something_stands_for_the_picture_while_it_loads(visit, origin):
    for source in ("sample:dusk", origin + "/dunes-2mp.jpg"):
        page = visit.open("thumbnail:300x200:fill,webp", source)
        shows(page, "variant-image", 300)
        page.get_by_role("tab", name="Placeholder").click()
        snippet = page.locator("#snippet")
        expect(snippet).to_contain_text("data-thumbhash")
        markup = snippet.inner_text()
        info = page.evaluate("(path) => fetch(path).then((answer) => answer.json())",
                             "/info/unsigned/" + urllib.parse.quote(source, safe=""))
        assert f"background: #{info['averageColour']}" in markup and f'data-thumbhash="{info["thumbhash"]}"' in markup
        tiny = re.search(r"url\((data:image/webp;base64,[^)]+)\)", markup).group(1)
        assert len(tiny) < 500, len(tiny)
        # The page's policy forbids to show it here.
        size = page.context.new_page().evaluate("""async (uri) => {
            const image = new Image(); image.src = uri; await image.decode();
            return [image.naturalWidth, image.naturalHeight]; }""", tiny)
        assert size == [16, 11], size
        # It follows the recipe.
        visit.recipe().fill("thumbnail:90x90:fill,webp")
        expect(snippet).to_contain_text("thumbnail:90x90:fill,webp")
        expect(snippet).to_contain_text("data-thumbhash")


@check
def the_divider_moves(visit, origin):
    page = visit.open("thumbnail:300,webp", "sample:meadow")
    shows(page, "variant-image", 300)
    divider = page.get_by_role("slider", name="Divider")
    expect(divider).to_have_attribute("aria-valuenow", "50")
    divider.focus()
    page.keyboard.press("ArrowRight")
    expect(divider).to_have_attribute("aria-valuenow", "52")
    page.keyboard.press("Home")
    expect(divider).to_have_attribute("aria-valuenow", "0")
    box = page.locator("#stage").bounding_box()
    page.mouse.move(box["x"] + 20, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.75, box["y"] + 60, steps=4)
    page.mouse.up()
    expect(divider).to_have_attribute("aria-valuenow", "75")
    page.mouse.move(box["x"] + 20, box["y"] + 60)
    expect(divider).to_have_attribute("aria-valuenow", "75")
    page.get_by_role("tab", name="Side by side").click()
    expect(divider).to_be_hidden()
    page.keyboard.press("ArrowLeft")
    expect(divider).to_be_visible()


@check
def everything_can_be_reached_and_has_a_name(visit, origin):
    page = visit.open("thumbnail:300,rounded-mask:10,tint:336699,auto", "sample:meadow")
    shows(page, "variant-image", 300)
    nameless = page.evaluate("""() => [...document.querySelectorAll("input, select, textarea, button, a, [role=slider]")]
        .filter((element) => element.checkVisibility())
        .filter((element) => !(element.labels?.length || element.getAttribute("aria-label") || element.innerText?.trim()))
        .map((element) => element.outerHTML)""")
    assert nameless == [], nameless
    total = page.evaluate("""() => [...document.querySelectorAll("input, select, textarea, button, a, [tabindex]")]
        .filter((element) => element.checkVisibility() && !element.disabled && element.tabIndex >= 0
            && !(element.type === "radio" && !element.checked)).length""")
    seen, bare = set(), set()
    page.evaluate("document.activeElement.blur()")
    for _ in range(total + 6):
        page.keyboard.press("Tab")
        found = page.evaluate("""() => {
            const element = document.activeElement;
            const drawn = [element, element.nextElementSibling].filter(Boolean)
                .flatMap((own) => [getComputedStyle(own), getComputedStyle(own, "::after")])
                .some((style) => style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2);
            return element === document.body ? null
                : { html: element.outerHTML.slice(0, 200), isDrawn: drawn };
        }""")
        if found is None:
            continue
        seen.add(found["html"])
        if not found["isDrawn"]:
            bare.add(found["html"])
    assert bare == set(), f"no focus ring: {bare}"
    assert any('id="divider"' in html for html in seen) and any('id="copy"' in html for html in seen), seen
    assert len(seen) > 25, len(seen)


@check
def snippets_can_be_copied(visit, origin):
    page = visit.open("thumbnail:300,webp", origin + "/dunes-2mp.jpg")
    shows(page, "variant-image", 300)
    snippet = page.locator("#snippet")
    url = snippet.inner_text()
    answer = page.request.get(url)
    assert answer.ok and answer.headers["content-type"] == "image/webp", url
    page.get_by_role("button", name="Copy").click()
    expect(page.locator("#copy-state")).to_have_text("Copied.")
    assert page.evaluate("navigator.clipboard.readText()") == url
    page.get_by_role("tab", name="HTML").click()
    expect(snippet).to_contain_text("dpr:2,thumbnail:300,webp")
    expect(snippet).to_contain_text('width="300"')
    page.get_by_role("tab", name="pipectl").click()
    expect(snippet).to_contain_text(f"pipectl get {origin}/dunes-2mp.jpg")
    page.keyboard.press("ArrowRight")
    expect(snippet).to_contain_text('recipe: "thumbnail:300,webp"')
    # Programs name no formats that they accept: they are given the one that is shown.
    for recipe, accept in (("thumbnail:300,auto:70:progressive", ""), ("thumbnail:300", ""),
                           ("thumbnail:300,auto:70:progressive", "image/*"),
                           ("thumbnail:300,auto", "image/webp,image/*")):
        visit.recipe().fill(recipe)
        page.locator("#accept").select_option(accept)
        page.wait_for_function("(recipe) => location.hash.includes(encodeURIComponent(recipe))", arg=recipe)
        expect(page.locator("#stage")).not_to_have_attribute("aria-busy", "true")
        shown = visit.facts("format").nth(2).inner_text()
        quality = ":70" if "70" in recipe else ""
        progressive = ":progressive" if "70" in recipe and shown in ("jpeg", "png") else ""
        page.get_by_role("tab", name="pipectl").click()
        expect(snippet).to_contain_text(f"-r thumbnail:300,{shown}{quality}{progressive} ")
        expect(snippet).to_contain_text(f"-o dunes-2mp.{'jpg' if shown == 'jpeg' else shown}")
        page.get_by_role("tab", name="Swift").click()
        expect(snippet).to_contain_text(f'recipe: "thumbnail:300,{shown}{quality}{progressive}"')
    page.get_by_text("Header fields of the response").click()
    expect(page.locator("#fields")).to_contain_text("content-security-policy")


@check
def the_caches_show_and_are_purged(visit, origin):
    source = origin + "/dunes-2mp.jpg"
    page = visit.open("thumbnail:90,webp", source)
    shows(page, "variant-image", 90)
    page.get_by_role("link", name="Caches").click()
    expect(page.get_by_role("meter")).to_have_count(6)
    card = page.locator("figure", has=page.get_by_text("thumbnail:90x90,webp"))
    expect(card).to_contain_text(source)
    page.wait_for_function("() => [...document.querySelectorAll('#recent img')].every((image) => image.naturalWidth > 0)")
    # The bars follow.
    misses = page.get_by_role("meter", name="memory variants").locator("xpath=..").locator("dd").nth(2)
    before = int(misses.inner_text())
    # A size that no earlier run against the same caches has asked for.
    edge = 100 + int(time.time()) % 900
    page.evaluate(
        "(path) => fetch(path)", f"/variant/unsigned/thumbnail:{edge},webp/" + urllib.parse.quote(source, safe=""))
    expect(misses).not_to_have_text(str(before))
    expect(page.locator("figure", has=page.get_by_text(f"thumbnail:{edge}x{edge},webp"))).to_be_visible()
    # Without a token there is no button that could purge, and with a wrong one the page says why it fails.
    visit.expected += ["401 (Unauthorized)", "403 (Forbidden)", "404 (Not Found)"]
    expect(card.get_by_role("button", name="Open")).to_be_visible()
    expect(card.get_by_role("button", name="Purge source")).to_be_hidden()
    page.get_by_role("textbox", name="Admin token").fill("secret-of-the-test")
    page.get_by_role("button", name="Use").click()
    expect(page.locator("#token-state")).to_contain_text("until this tab is closed")
    card.get_by_role("button", name="Purge source").click()
    card.get_by_role("button", name="Purge original and variants?").click()
    expect(card.locator(".note")).not_to_have_text("")
    kept = page.evaluate("[JSON.stringify(sessionStorage), JSON.stringify(localStorage), document.cookie, location.href]")
    assert "secret-of-the-test" in kept[0] and not any("secret" in text for text in kept[1:]), kept
    page.get_by_role("button", name="Forget").click()
    assert "secret-of-the-test" not in page.evaluate("JSON.stringify(sessionStorage)")
    expect(card.get_by_role("button", name="Purge source")).to_be_hidden()
    card.get_by_role("button", name="Open").click()
    expect(visit.recipe()).to_have_value("thumbnail:90x90,webp")
    shows(page, "variant-image", 90)
    if visit.token is None:
        return
    page.get_by_role("link", name="Caches").click()
    page.get_by_role("textbox", name="Admin token").fill(visit.token)
    page.get_by_role("button", name="Use").click()
    card.get_by_role("button", name="Purge source").click()
    card.get_by_role("button", name="Purge original and variants?").click()
    expect(page.locator("figure", has=page.get_by_text(source))).to_have_count(0)


def phones_and_colours(browser, server, pictures):
    colours = set()
    for name, width, height, scheme in (
            ("desk-light", 1440, 900, "light"), ("desk-dark", 1440, 900, "dark"),
            ("phone-light", 390, 844, "light"), ("phone-dark", 390, 844, "dark")):
        visit = Visit(browser, server, None, width, height, scheme, touch=width < 500)
        page = visit.open("thumbnail:600x400:fill:gravity=attention,rounded-mask:24,webp:80", "sample:dusk")
        shows(page, "variant-image", 600)
        for view in ("Picture", "Caches"):
            page.get_by_role("link", name=view, exact=True).click()
            assert page.evaluate("document.documentElement.scrollWidth") <= width, f"{name}: {view} is too wide"
        page.get_by_role("link", name="Picture", exact=True).click()
        colours.add((scheme, page.evaluate("getComputedStyle(document.body).backgroundColor")))
        if pictures:
            page.screenshot(path=f"{pictures}/{name}.png")
        assert visit.troubles == [], visit.troubles
        visit.context.close()
    assert len(colours) == 2, colours


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("server")
    parser.add_argument("origin")
    parser.add_argument("--token")
    parser.add_argument("--pictures")
    parser.add_argument("--only")
    given = parser.parse_args()
    failed = False
    with sync_playwright() as playwright, contextlib.closing(playwright.chromium.launch(
            executable_path="/usr/bin/chromium",
            args=["--no-sandbox", "--disable-background-networking", "--disable-component-update",
                  "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--proxy-server=direct://"])) as browser:
        for action in checks + [phones_and_colours]:
            if given.only and given.only != action.__name__:
                continue
            try:
                if action is phones_and_colours:
                    action(browser, given.server, given.pictures)
                else:
                    visit = Visit(browser, given.server, given.token)
                    action(visit, given.origin)
                    assert visit.troubles == [], visit.troubles
                    visit.context.close()
                print("passed", action.__name__, flush=True)
            except Exception as error:  # noqa: BLE001: each failure is a line of the report
                failed = True
                print("failed", action.__name__, str(error)[:1500], flush=True)
    print("done", flush=True)
    sys.exit(failed)


main()
