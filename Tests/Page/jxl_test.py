#!/usr/bin/env python3
"""JPEGs that are kept in JPEG XL, in a browser: `jxl_test.py SERVER FOLDER`.

SERVER is the address of a running `pipectl serve`, and FOLDER contains JPEGs. A browser must show each JPEG and its JPEG XL
file with the same pixels. Needs playwright and Debian's chromium (scripts/install-dependencies chromium).
"""
import http.server
import pathlib
import sys
import threading
import urllib.parse
import urllib.request

from playwright.sync_api import sync_playwright

NAMES = [
    "dusk-2mp", "exif-orientation-3", "exif-orientation-6", "forest-portrait", "grey", "meadow-small", "progressive",
    "wide-gamut-adobe", "wide-gamut-p3",
]
# The accepted maximum difference, and the fraction of samples that may differ by more than 2. Chromium 156 decodes grayscale
# JPEG XL less precisely than libjxl does. The conversion from Adobe RGB amplifies differences in dark areas.
LIMITS = {"grey": (12, 0.06), "wide-gamut-adobe": (24, 0.04)}
ACCEPT = "image/jxl,image/avif,image/webp,*/*;q=0.8"

PIXELS = """async ([first, second]) => {
    const draw = async (address) => {
        const image = new Image();
        image.src = address;
        await image.decode();
        const [width, height] = [image.naturalWidth, image.naturalHeight];
        const canvas = new OffscreenCanvas(width, height).getContext('2d');
        canvas.drawImage(image, 0, 0);
        return [width, height, canvas.getImageData(0, 0, width, height).data];
    };
    const [left, right] = [await draw(first), await draw(second)];
    let [most, over, sum] = [0, 0, 0];
    for (let at = 0; at < left[2].length; at++) {
        const difference = Math.abs(left[2][at] - right[2][at]);
        most = Math.max(most, difference);
        if (difference > 2) over++;
        sum += difference;
    }
    return [left.slice(0, 2), right.slice(0, 2), most, over / left[2].length, sum / left[2].length];
}"""


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves the files in `files`."""

    files = {"/": ("text/html", b"<!doctype html>")}

    def do_GET(self):
        kind, body = self.files.get(self.path, ("text/plain", b""))
        self.send_response(200 if body else 404)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


def main(server, folder):
    files = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=files.serve_forever, daemon=True).start()
    origin = f"http://127.0.0.1:{files.server_port}"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(origin)
        for name in NAMES:
            jpeg = pathlib.Path(folder, name + ".jpg").read_bytes()
            Handler.files[f"/{name}.jpg"] = ("image/jpeg", jpeg)
            source = urllib.parse.quote(f"{origin}/{name}.jpg", safe="")
            request = urllib.request.Request(f"{server}/variant/unsigned/jxl:transcode/{source}", headers={"Accept": ACCEPT})
            with urllib.request.urlopen(request, timeout=30) as response:
                assert response.headers["Content-Type"] == "image/jxl", (name, response.headers["Content-Type"])
                kept = response.read()
            assert b"jbrd" in kept and len(kept) < len(jpeg), name
            Handler.files[f"/{name}.jxl"] = ("image/jxl", kept)
            first, second, most, over, mean = page.evaluate(PIXELS, [f"/{name}.jpg", f"/{name}.jxl"])
            print(f"{name}: {len(jpeg)} bytes, {len(kept)} as JPEG XL; pixels differ by at most {most}, {mean:.3f} on average, {over:.4%} by more than 2")
            # A JPEG decoder rounds and clips luma and chroma before it converts them to RGB. A JPEG XL decoder does not.
            limits = LIMITS.get(name, (12, 0.01))
            assert first == second and most <= limits[0] and over < limits[1] and mean < 0.6, name
        browser.close()
    print("done")


main(*sys.argv[1:])
