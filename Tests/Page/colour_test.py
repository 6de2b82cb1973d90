#!/usr/bin/env python3
"""Compares colours and alpha of variants with what Chromium shows of their originals: `colour_test.py PIPECTL`.

Makes PNGs with chunks on colour, and AVIFs with code points, renders each as PNG, and reads both in a canvas.
Prints one line each, with the largest difference of 8-bit values. Needs playwright, Debian's chromium and avifenc.

Variants of AVIFs with a limited range are compared with what Chromium shows of the same picture with a full range. On
x86 its libyuv multiplies Cb by at most 2 for blue, where a limited range needs 2.112 (BT.709) or 2.142 (BT.2020), so
its blue is up to 13 or 16 off H.273. `CodedColorSpaceTests` compares these pictures with the arithmetic of H.273.
"""
import argparse
import base64
import pathlib
import struct
import subprocess
import sys
import tempfile
import zlib

from playwright.sync_api import sync_playwright

WIDTH, HEIGHT = 64, 32
READ = """async ([kind, data]) => {
    const image = new Image();
    image.src = `data:image/${kind};base64,${data}`;
    await image.decode();
    const canvas = new OffscreenCanvas(image.naturalWidth, image.naturalHeight);
    const context = canvas.getContext('2d');
    context.drawImage(image, 0, 0);
    return [canvas.width, ...context.getImageData(0, 0, canvas.width, canvas.height).data];
}"""


def picture(depth, has_alpha=False):
    """Four colours in columns, each brighter downwards in steps of eight rows."""
    top = 2**depth - 1
    colours = ((1, 1, 1), (1, 0.25, 0.25), (0.3, 0.9, 0.4), (0.2, 0.4, 0.95))
    for y in range(HEIGHT):
        row = []
        for x in range(WIDTH):
            level = (0.25, 0.5, 0.75, 1)[y // 8]
            row += [round(top * level * part) for part in colours[x // 16]]
            if has_alpha:
                row.append(top if x < 40 and y < 16 else round(top * 0.4))
        yield row


def png(*chunks, depth=8, has_alpha=False):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + struct.pack(f">{len(row)}{'B' if depth == 8 else 'H'}", *row) for row in picture(depth, has_alpha))
    head = struct.pack(">IIBBBBB", WIDTH, HEIGHT, depth, 6 if has_alpha else 2, 0, 0, 0)
    parts = [(b"IHDR", head), *chunks, (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts)


def avif(folder, *options, depth=8, has_alpha=False):
    source, result = folder / "in.png", folder / "in.avif"
    source.write_bytes(png(depth=8 if depth == 8 else 16, has_alpha=has_alpha))
    command = ["avifenc", "--min", "0", "--max", "0", "--minalpha", "0", "--maxalpha", "0", "-s", "8", "-y", "444"]
    subprocess.run([*command, "-d", str(depth), *options, source, result], check=True, capture_output=True)
    return result.read_bytes()


def cases(folder):
    """Title, file, and the file that Chromium shows, if that is another one."""
    adobe = (0.3127, 0.3290, 0.64, 0.33, 0.21, 0.71, 0.15, 0.06)
    chrm = (b"cHRM", struct.pack(">8I", *(round(value * 100_000) for value in adobe)))
    yield "gAMA 1.0", png((b"gAMA", struct.pack(">I", 100_000)))
    yield "gAMA 0.55", png((b"gAMA", struct.pack(">I", 55_556)))
    yield "gAMA and cHRM of Adobe RGB", png((b"gAMA", struct.pack(">I", 45_455)), chrm)
    yield "sRGB before gAMA", png((b"sRGB", b"\0"), (b"gAMA", struct.pack(">I", 100_000)))
    yield "cICP Display P3", png((b"cICP", bytes([12, 13, 0, 1])))
    yield "cICP BT.2020", png((b"cICP", bytes([9, 13, 0, 1])))
    yield "cICP PQ, 16 bits", png((b"cICP", bytes([9, 16, 0, 1])), depth=16)
    yield "cICP HLG, 16 bits", png((b"cICP", bytes([9, 18, 0, 1])), depth=16)
    for name, codes in (("sRGB, matrix of BT.601", "1/13/6"), ("sRGB, matrix of BT.709", "1/13/1"),
                        ("Display P3", "12/13/6"), ("BT.2020", "9/13/9"), ("linear light", "1/8/6"),
                        ("curve of BT.709", "1/1/1")):
        full, limited = (avif(folder, "--cicp", codes, "-r", extent) for extent in ("full", "limited"))
        yield f"AVIF {name}, full range", full
        yield f"AVIF {name}, limited range", limited, full
    for depth in (10, 12):
        yield f"AVIF PQ, {depth} bits", avif(folder, "--cicp", "9/16/9", depth=depth)
        yield f"AVIF HLG, {depth} bits", avif(folder, "--cicp", "9/18/9", depth=depth)
    for options in ([], ["-p"], ["--irot", "1"], ["--imir", "0"], ["-p", "--irot", "3"]):
        yield " ".join(["AVIF alpha", *options]), avif(folder, *options, has_alpha=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pipectl")
    arguments = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = pathlib.Path(name)
        options = ["--no-sandbox", "--force-color-profile=srgb"]
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=options)
        page = browser.new_page()
        print("Chromium", browser.version)
        for title, data, *shown in cases(folder):
            kind = "png" if data.startswith(b"\x89PNG") else "avif"
            source, variant = folder / ("original." + kind), folder / "variant.png"
            source.write_bytes(data)
            command = [arguments.pipectl, "get", source, "-r", "png:lossless", "-o", variant, "--cache", folder / "cache"]
            subprocess.run(command, check=True, capture_output=True)
            pixels = [
                page.evaluate(READ, [kind, base64.b64encode(data).decode()])
                for kind, data in ((kind, (shown or [data])[0]), ("png", variant.read_bytes()))
            ]
            worst = max(map(abs, map(int.__sub__, *pixels))) if len(pixels[0]) == len(pixels[1]) else 255
            # Rounding grows where alpha divides 8 bits, in the file (-p) or in the canvas, and where 220 levels are
            # spread over 256 and converted.
            tolerance = 7 if "alpha -p" in title else 4 if "alpha" in title else 5 if "limited" in title else 2
            failed += worst > tolerance
            print(f"{'ok  ' if worst <= tolerance else 'FAIL'} {title}: {worst}")
        browser.close()
    sys.exit(1 if failed else 0)


main()
