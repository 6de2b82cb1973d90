#!/usr/bin/env python3
"""Judges of a thumbnail: three references made of the original, and SSIMULACRA2 of a result against them.

    Benchmarks/quality_judges.py score linear|gamma|chromium|all ORIGINAL RESULT… [--cache FOLDER]
    Benchmarks/quality_judges.py reference linear|gamma|chromium ORIGINAL WIDTH HEIGHT OUT.png [--cache FOLDER]

- `linear`: the decoded original shrunk by Lanczos with three lobes in linear light (IEC 61966-2-1), in floats. Light
  adds up as in a lens, or as seen from afar. Favours programs that work in linear light.
- `gamma`: the same with the stored values. Dark lines on white keep their weight. Favours programs that mix stored
  values.
- `chromium`: an <img> of that size in Chromium, at one device pixel a CSS pixel. It averages stored values in a pyramid
  of halves (mipmaps) and interpolates between pixels of the level nearest in size, so it is soft at some sizes and
  jagged at others. Shows what users see who get the original; favours programs that mix stored values, and no program
  fully, as none scales that way.

A result has any format that Pillow or vips reads; its size is the reference's, so references of sizes that differ by a
pixel are different files. Alpha is premultiplied for shrinking, and laid on white, in stored values, before scoring.
Both are compared as 8-bit sRGB; profiles and orientation are ignored, so originals should have none.

References and scores are kept in the cache folder by digests of the pictures; several processes may share it.

    judges = Judges("/tmp/cache")
    judges.scores([("gamma", "original.png", "thumbnail.png"), …])  → [97.2, …]
    judges.reference("linear", "original.png", 300, 200)  → path

Needs Python 3.11, PyPI numpy, Pillow, ssimulacra2 and, for `chromium`, playwright with Debian's chromium.
"""
import argparse
import functools
import hashlib
import math
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor

REFERENCES = ("linear", "gamma", "chromium")
# Counted up when a reference's arithmetic changes.
REVISION = 1
CHROMIUM = "/usr/bin/chromium"


# --- References

def to_linear(stored):
    import numpy as np
    return np.where(stored <= 0.04045, stored / 12.92, ((stored + 0.055) / 1.055) ** 2.4)


def to_stored(linear):
    import numpy as np
    return np.where(linear <= 0.0031308, linear * 12.92, 1.055 * np.maximum(linear, 0) ** (1 / 2.4) - 0.055)


def lanczos(count, size):
    """Weights of `count` samples for each of `size`: three lobes, edges repeated."""
    import numpy as np
    scale = max(count / size, 1)
    result = np.zeros((size, count))
    for row in range(size):
        centre = (row + 0.5) * count / size - 0.5
        index = np.arange(math.floor(centre - 3 * scale), math.ceil(centre + 3 * scale) + 1)
        x = np.abs((index - centre) / scale)
        np.add.at(result[row], np.clip(index, 0, count - 1), np.where(x < 3, np.sinc(x) * np.sinc(x / 3), 0))
        result[row] /= result[row].sum()
    return result.astype(np.float32)


def shrunk(original, width, height, linear):
    """The picture of `width` × `height`, opaque, with 8 bits."""
    import numpy as np
    from PIL import Image
    Image.MAX_IMAGE_PIXELS = None
    image = Image.open(original)
    has_alpha = "A" in image.getbands() or "transparency" in image.info
    pixels = np.asarray(image.convert("RGBA" if has_alpha else "RGB"))
    stored = np.arange(256) / 255
    light = (to_linear(stored) if linear else stored).astype(np.float32)
    down, across = lanczos(pixels.shape[0], height), lanczos(pixels.shape[1], width).T
    alpha = stored.astype(np.float32)[pixels[:, :, 3]] if has_alpha else 1
    mixed = np.stack([(down @ (light[pixels[:, :, band]] * alpha)) @ across for band in range(3)], -1)
    if has_alpha:
        alpha = (down @ alpha @ across)[:, :, None]
        mixed = np.clip(mixed / np.maximum(alpha, 1e-6), 0, 1)
        alpha = np.clip(alpha, 0, 1)
    encoded = to_stored(mixed) if linear else mixed
    encoded = np.clip(encoded * alpha + 1 - alpha, 0, 1)
    return Image.fromarray((encoded * 255 + 0.5).astype(np.uint8))


def saved(image, path):
    """Saves a PNG so that others see the whole file or none."""
    partial = f"{path}.{os.getpid()}"
    image.save(partial, "png")
    os.replace(partial, path)


def make_lanczos(task):
    kind, original, width, height, path = task
    saved(shrunk(original, width, height, kind == "linear"), path)


def make_chromium(tasks):
    """The references of all tasks, drawn by one browser."""
    import io
    from PIL import Image
    from playwright.sync_api import sync_playwright
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[
            "--no-sandbox", "--force-color-profile=srgb", "--disable-gpu", "--hide-scrollbars",
            "--allow-file-access-from-files"])
        for _, original, width, height, path in tasks:
            html = os.path.join(folder, "page.html")
            with open(html, "w", encoding="utf-8") as file:
                file.write(
                    "<!doctype html><body style='margin:0;background:#fff'><img decoding=sync style='display:block;"
                    f"width:{width}px;height:{height}px' src='file://{os.path.abspath(original)}'>")
            tab = browser.new_page(viewport={"width": width, "height": height}, device_scale_factor=1)
            tab.goto("file://" + html)
            tab.evaluate("document.images[0].decode()")
            shot = Image.open(io.BytesIO(tab.screenshot(clip={"x": 0, "y": 0, "width": width, "height": height})))
            tab.close()
            assert shot.size == (width, height), f"{original}: {shot.size}"
            saved(shot.convert("RGB"), path)
        browser.close()


# --- Scores

def opened(path):
    """A picture, opaque on white, as 8-bit RGB."""
    from PIL import Image, UnidentifiedImageError
    try:
        image = Image.open(path)
        image.load()
    except UnidentifiedImageError:  # JPEG XL
        with tempfile.TemporaryDirectory() as folder:
            plain = os.path.join(folder, "plain.png")
            subprocess.run(["vips", "copy", path, plain + "[strip]"], check=True)
            image = Image.open(plain)
            image.load()
    if "A" in image.getbands() or "transparency" in image.info:
        image = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, "#fff"), image)
    return image.convert("RGB")


def score(paths):
    from ssimulacra2 import compute_ssimulacra2
    reference, result = paths
    with tempfile.NamedTemporaryFile(suffix=".png") as plain:
        opened(result).save(plain.name, compress_level=1)
        return compute_ssimulacra2(reference, plain.name)


@functools.lru_cache(maxsize=10_000)
def digest_of(path, _modified, _size):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digest(path):
    state = os.stat(path)
    return digest_of(path, state.st_mtime_ns, state.st_size)


class Judges:
    def __init__(self, cache, processes=os.cpu_count()):
        self.folder, self.processes = cache, processes
        self.log = os.path.join(cache, "scores.txt")
        os.makedirs(os.path.join(cache, "references"), exist_ok=True)

    def path(self, kind, original, width, height):
        name = f"{kind}-{REVISION}-{digest(original)[:24]}-{width}x{height}.png"
        return os.path.join(self.folder, "references", name)

    def reference(self, kind, original, width, height):
        self.make([(kind, original, width, height)])
        return self.path(kind, original, width, height)

    def make(self, wanted):
        """Makes the references that are not there yet."""
        missing = {self.path(*task): task for task in wanted if not os.path.exists(self.path(*task))}
        tasks = [(*task, path) for path, task in missing.items()]
        drawn = [task for task in tasks if task[0] == "chromium"]
        mixed = [task for task in tasks if task[0] != "chromium"]
        if mixed:
            with ProcessPoolExecutor(self.processes) as pool:
                list(pool.map(make_lanczos, mixed))
        if drawn:
            make_chromium(drawn)

    def scores(self, tasks):
        """SSIMULACRA2 of each (kind of reference, original, result)."""
        from PIL import Image
        Image.MAX_IMAGE_PIXELS = None
        sizes = {result: opened(result).size for result in {task[2] for task in tasks}}
        wanted = [(kind, original, *sizes[result]) for kind, original, result in tasks]
        self.make(wanted)
        pairs = [(self.path(*reference), task[2]) for reference, task in zip(wanted, tasks)]
        keys = [f"{digest(reference)[:24]}-{digest(result)[:24]}" for reference, result in pairs]
        known = self.known()
        unknown = {key: pair for key, pair in zip(keys, pairs) if key not in known}
        if unknown:
            with ProcessPoolExecutor(self.processes) as pool, open(self.log, "a", encoding="utf-8") as log:
                for key, value in zip(unknown, pool.map(score, unknown.values())):
                    known[key] = value
                    # A line is appended at once, so processes that share the folder do not mix theirs.
                    log.write(f"{key} {value:.4f}\n")
                    log.flush()
        return [known[key] for key in keys]

    def known(self):
        if not os.path.exists(self.log):
            return {}
        with open(self.log, encoding="utf-8") as log:
            return {key: float(value) for key, value in (line.split() for line in log)}


def main():
    parser = argparse.ArgumentParser(description="Makes references of thumbnails, and scores thumbnails against them.")
    parser.add_argument("--cache", help="folder for references and scores, kept (default: a temporary one)")
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("score")
    one.add_argument("kind", choices=(*REFERENCES, "all"))
    one.add_argument("original")
    one.add_argument("results", nargs="+")
    one = commands.add_parser("reference")
    one.add_argument("kind", choices=REFERENCES)
    one.add_argument("original")
    one.add_argument("width", type=int)
    one.add_argument("height", type=int)
    one.add_argument("out")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        judges = Judges(options.cache or temporary)
        if options.command == "reference":
            made = judges.reference(options.kind, options.original, options.width, options.height)
            with open(made, "rb") as source, open(options.out, "wb") as target:
                target.write(source.read())
            return
        kinds = REFERENCES if options.kind == "all" else (options.kind,)
        scores = judges.scores([(kind, options.original, result) for result in options.results for kind in kinds])
        for number, result in enumerate(options.results):
            row = scores[number * len(kinds):][:len(kinds)]
            print(*(f"{kind} {value:.2f}" for kind, value in zip(kinds, row)), result)


if __name__ == "__main__":
    main()
