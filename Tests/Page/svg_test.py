#!/usr/bin/env python3
"""Sanitized SVG in a browser: `svg_test.py SERVER`.

SERVER is the address of a running `pipectl serve`. Hostile drawings try to run scripts and to load from a listening socket, and
icons of Debian's adwaita-icon-theme must look the same before and after. Needs playwright and Debian's chromium
(scripts/install-dependencies chromium).
"""
import base64
import http.server
import pathlib
import sys
import threading
import urllib.parse
import urllib.request

from playwright.sync_api import sync_playwright

ICONS = pathlib.Path("/usr/share/icons/Adwaita")
POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
NAMESPACES = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" xmlns:h="http://www.w3.org/1999/xhtml"'


def drawing(body, root="", prolog=""):
    return f'{prolog}<svg {NAMESPACES} width="100" height="100" {root}>{body}</svg>'


def hostile(trap):
    """The drawings by name. Each tries to run `js`, or to load `url`."""
    url, js = trap + "/NAME", "fetch('" + trap + "/NAME')"
    quoted = js.replace("'", "&#39;")
    data = "data:text/html;base64," + base64.b64encode(f"<script>{js}</script>".encode()).decode()
    inner = "data:image/svg+xml;base64," + base64.b64encode(drawing(f"<script>{js}</script><image href='{url}'/>").encode()).decode()
    style = lambda css, prolog="": drawing(f'<style>{css}</style><rect class="a" width="9" height="9"/><text class="a">a</text>', prolog=prolog)
    inline = lambda css: drawing(f'<rect width="50" height="50" style="{css}"/><text y="20" style="{css}">a</text>')
    return {
        # Scripts
        "script": drawing(f"<script>{js}</script>"),
        "script type": drawing(f'<script type="text/ecmascript"><![CDATA[{js}]]></script>'),
        "script module": drawing(f'<script type="module">{js}</script>'),
        "script href": drawing(f'<script href="{url}"/>'),
        "script xlink": drawing(f'<script xlink:href="{url}"/>'),
        "script data": drawing(f'<script href="data:text/javascript,{quoted}"/>'),
        "script html": drawing(f"<h:script>{js}</h:script>"),
        "script prefix": f'<s:svg xmlns:s="http://www.w3.org/2000/svg" width="9" height="9"><s:script>{js}</s:script></s:svg>',
        "script in defs": drawing(f"<defs><g><script>{js}</script></g></defs>"),
        "script in title": drawing(f"<title><script>{js}</script></title><desc><h:script>{js}</h:script></desc>"),
        "script in metadata": drawing(f"<metadata><script>{js}</script></metadata>"),
        "script in a symbol": drawing(f'<symbol id="s"><script>{js}</script></symbol><use href="#s"/>'),
        "script by entity": drawing("&s;", prolog=f'<!DOCTYPE svg [<!ENTITY s "&#60;script xmlns=&#39;http://www.w3.org/2000/svg&#39;>{quoted}&#60;/script>">]>'),
        "script in style": drawing(f"<style><script>{js}</script></style>"),
        "script as markup in style": drawing(f"<style>&lt;/style>&lt;img src=x onerror=\"{quoted}\">&lt;script>{js}&lt;/script></style>"),
        "script as markup in title": drawing(f"<title>&lt;/title>&lt;img src=x onerror=\"{quoted}\"></title>"),
        "style in title": drawing(f"<title><style>&lt;img src=x onerror=\"{quoted}\"></style></title>"),
        "comment breakout": drawing(f"<!-- --><script>{js}</script><!-- -->"),
        "processing instruction": drawing("<rect/>", prolog=f'<?xml-stylesheet href="{url}" type="text/css"?>'),
        "transformation": drawing("<rect/>", prolog=f'<?xml-stylesheet href="{url}" type="text/xsl"?>'),
        "utf-7": drawing(f"<script>{js}</script>", prolog='<?xml version="1.0" encoding="ISO-8859-1"?>'),
        # Event handlers
        "onload": drawing("", root=f'onload="{quoted}"'),
        "onload upper case": drawing("", root=f'onLoad="{quoted}" ONLOAD="{quoted}"'),
        "onload of an image": drawing(f'<image href="data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAAC" width="9" height="9" onload="{quoted}" onerror="{quoted}"/>'),
        "onerror": drawing(f'<image href="x:" onerror="{quoted}"/>'),
        "onbegin": drawing(f'<animate attributeName="x" dur="1s" onbegin="{quoted}" onend="{quoted}"/>'),
        "onfocus": drawing(f'<a href="#x" tabindex="0" autofocus="" onfocus="{quoted}">a</a>', root=f'tabindex="0" autofocus="" onfocusin="{quoted}"'),
        "handler by animation": drawing(f'<rect><set attributeName="onmouseover" to="{quoted}"/></rect><animate attributeName="onload" values="{quoted}"/>'),
        "handler by attribute list": drawing("<rect/>", prolog=f'<!DOCTYPE svg [<!ATTLIST svg onload CDATA "{quoted}">]>'),
        # Links and embedded documents
        "link": drawing(f'<a href="javascript:{quoted}"><rect width="100" height="100"/></a>'),
        "link with white space": drawing(f'<a xlink:href=" java&#10;script:{quoted}"><rect width="100" height="100"/></a>'),
        "link by animation": drawing(f'<a><rect width="100" height="100"/><animate attributeName="href" values="javascript:{quoted}"/><set attributeName="xlink:href" to="javascript:{quoted}"/></a>'),
        "foreignObject": drawing(f'<foreignObject width="99" height="99"><h:img src="{url}" onerror="{quoted}"/><h:iframe src="{url}"/></foreignObject>'),
        "foreignObject with a document": drawing(f'<foreignObject width="99" height="99"><h:iframe srcdoc="&lt;script>{js}&lt;/script>"/><h:object data="{data}"/><h:embed src="{url}"/></foreignObject>'),
        "html": drawing(f'<h:img src="{url}"/><h:link rel="stylesheet" href="{url}"/><h:style>@import url({url});</h:style><h:base href="{url}"/>'),
        "html refresh": drawing(f'<h:meta http-equiv="refresh" content="0;url={url}"/>'),
        "iframe": drawing(f'<iframe src="{url}"/><object data="{url}"/><embed src="{url}"/><video src="{url}"/><audio src="{url}"/>'),
        "nested svg": drawing(f'<svg onload="{quoted}"><script>{js}</script></svg>'),
        "mathml": drawing(f'<math xmlns="http://www.w3.org/1998/Math/MathML"><mtext><script xmlns="http://www.w3.org/2000/svg">{js}</script></mtext></math>'),
        # References
        "image": drawing(f'<image href="{url}" width="9" height="9"/>'),
        "image xlink": drawing(f'<image xlink:href="{url}" width="9" height="9"/>'),
        "image without a scheme": drawing(f'<image href="{url[5:]}" width="9" height="9"/>'),
        "image with another prefix": drawing(f'<g xmlns:y="http://www.w3.org/1999/xlink"><image y:href="{url}" width="9" height="9"/></g>'),
        "image with a base": drawing(f'<g xml:base="{url}"><image href="x.png" width="9" height="9"/></g>', root=f'xml:base="{url}"'),
        "image with a drawing": drawing(f'<image href="{inner}" width="9" height="9"/>'),
        "image by entity": drawing('<image href="&u;" width="9" height="9"/>', prolog=f'<!DOCTYPE svg [<!ENTITY u "{url}">]>'),
        "image by animation": drawing(f'<image width="9" height="9"><animate attributeName="href" values="{url}"/><set attributeName="xlink:href" to="{url}"/></image>'),
        "use": drawing(f'<use href="{url}#a"/><use xlink:href="{url}#a"/>'),
        "use of a drawing": drawing(f'<use href="{inner}#a"/>'),
        "use by animation": drawing(f'<use href="#a"><set attributeName="href" to="{url}#a"/></use>'),
        "filter image": drawing(f'<filter id="f"><feImage href="{url}"/><feImage xlink:href="{url}"/></filter><rect width="9" height="9" filter="url(#f)"/>'),
        "gradient": drawing(f'<linearGradient id="g" href="{url}#g"/><pattern id="p" xlink:href="{url}#p"/><rect width="9" height="9" fill="url(#g)" stroke="url(#p)"/>'),
        "text path": drawing(f'<text><textPath href="{url}#p">abc</textPath></text><animateMotion><mpath href="{url}#p"/></animateMotion>'),
        "presentation attributes": drawing(f'<rect width="99" height="99" fill="url({url}#a)" stroke="url({url}#b)" filter="url({url}#c)" mask="url({url}#d)" clip-path="url({url}#e)" cursor="url({url}),auto" marker-start="url({url}#f)"/>'),
        "presentation by animation": drawing(f'<rect width="99" height="99"><animate attributeName="fill" values="url({url}#a);url({url}#b)" dur="1s"/><set attributeName="filter" to="url({url}#c)"/></rect>'),
        "animation that hides a value in strings": drawing(f'<rect width="99" height="99"><animate attributeName="filter" values="\';url({url}#a);\'" dur="10s" calcMode="discrete" keyTimes="0;0.01;0.99"/></rect>'),
        "animation with an escaped separator": drawing(f'<rect width="99" height="99"><animate attributeName="mask" values="url(#a\\3b url\\28 {url}#a\\29\\3b )" dur="10s"/></rect>'),
        "root with important words": drawing("<rect/>", root=f'style="a:\'\\!important\';b:\'; background:url({url});\'"'),
        "root with an important comment": drawing("<rect/>", root=f'style="a:/!important* \'*/; background:url({url}); /*\';"'),
        "external entity": drawing("&x;", prolog=f'<!DOCTYPE svg [<!ENTITY x SYSTEM "{url}">]>'),
        "external document type": drawing("<rect/>", prolog=f'<!DOCTYPE svg SYSTEM "{url}">'),
        "parameter entity": drawing("<rect/>", prolog=f'<!DOCTYPE svg [<!ENTITY % x SYSTEM "{url}"> %x;]>'),
        "include": drawing(f'<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="{url}"/>'),
        # Style sheets
        "import": style(f"@import url({url});"),
        "import of a string": style(f'@import "{url}";'),
        "import with escapes": style(f'@\\69mport "{url}";'),
        "import after a comment": style(f'/* */@import/**/"{url}" screen;'),
        "import in CDATA": style(f'<![CDATA[@import url("{url}");]]>'),
        "import by entity": style("&i;", prolog=f"<!DOCTYPE svg [<!ENTITY i '@import url({url});'>]>"),
        "background": style(f".a{{background:url({url})}} svg{{background-image:url('{url}')}}"),
        "background with escapes": style(f"svg{{background:u\\72l({url})}} .a{{fill:\\75 \\52 l('{url}#a')}}"),
        "font": style(f"@font-face{{font-family:x;src:url({url})}} .a{{font-family:x}}"),
        "content": style(f".a::before{{content:url({url})}} svg::after{{content:url({url})}}"),
        "image set": style(f'svg{{background:image-set("{url}" 1x)}} .a{{background:-webkit-image-set(url({url}) 1x)}}'),
        "cross fade": style(f"svg{{background:-webkit-cross-fade(url({url}),url({url}),50%)}}"),
        "custom property": style(f":root{{--u:url({url})}} svg{{background:var(--u)}} .a{{fill:var(--u)}}"),
        "hidden in a comment": style(f'.b{{a:/@x;* "*/ }}svg{{background:url({url})}} "}}'),
        "hidden in a string": style(f"svg{{a:'\\\n' ;background:url({url})}}"),
        "list and cursor": inline(f"list-style:url({url});cursor:url({url}),auto;display:list-item"),
        "style attribute": inline(f"background:url({url});fill:url({url}#a);filter:url({url}#b);mask:url({url}#c)"),
        "style with references": inline(f"fill:u&#x5c;72l({url}#a);&#98;ackground:&#117;rl({url})"),
        "shape and offset": inline(f"shape-outside:url({url});mask-image:url({url});border-image:url({url}) 1;offset-path:url({url}#p)"),
        "media and layers": style(f"@media all{{@layer x{{@supports (fill:red){{svg{{background:url({url})}}}}}}}}"),
        "namespace": style(f'@namespace url({url});@charset "utf-8";@document url({url}){{svg{{background:url({url})}}}}'),
        "unfinished": style(f"svg{{background:url({url}"),
    }


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves the files in `files`, and notes every other path in `hits`."""

    files = {}
    hits = []

    def do_GET(self):
        found = self.files.get(self.path)
        if found is None:
            self.hits.append(urllib.parse.unquote(self.path))
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", found[0] if found else "text/plain")
        self.send_header("Access-Control-Allow-Origin", "*")
        self.send_header("Cache-Control", "max-age=600")
        body = found[1] if found else b""
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


def sanitized(server, origin, path, recipe="original"):
    source = urllib.parse.quote(origin + path, safe="")
    address = f"{server}/variant/unsigned/{recipe}/{source}"
    try:
        with urllib.request.urlopen(address, timeout=30) as response:
            return address, response.headers, response.read()
    except urllib.error.HTTPError as error:
        return None, error.code, error.read()


def check_hostile(page, server, origin):
    trap = origin + "/trap"
    drawings = hostile(trap)
    for number, (name, text) in enumerate(drawings.items()):
        Handler.files[f"/raw/{number}.svg"] = ("image/svg+xml", text.replace("NAME", f"{number}").encode())
    addresses, refused = [], 0
    for number, name in enumerate(drawings):
        address, headers, body = sanitized(server, origin, f"/raw/{number}.svg")
        if address is None:
            # The server refuses documents that it cannot sanitize.
            assert headers in (415, 422), (name, headers, body)
            refused += 1
            continue
        assert headers["Content-Type"] == "image/svg+xml", (name, headers["Content-Type"])
        assert headers["Content-Security-Policy"] == POLICY and headers["X-Content-Type-Options"] == "nosniff", name
        addresses.append(address)
        text = body.decode()
        for word in ["<script", "<!", "<?", "foreignobject", "javascript:", "/trap", "entity", "@import"]:
            # Escaped text and strings in style sheets may stay, because browsers do not interpret them.
            assert word not in text.lower() or name.startswith(("script as markup", "style in", "hidden in", "animation", "root with")), (name, word, text)
        # The same bytes must be harmless without our header fields, and as a part of a page.
        Handler.files[f"/clean/{number}.svg"] = ("image/svg+xml", body)
        Handler.files[f"/clean/{number}.html"] = ("text/html", b"<!doctype html><body>" + body)
        for recipe in ["thumbnail:50", "thumbnail:50x50:fill"]:
            address, headers, sized = sanitized(server, origin, f"/raw/{number}.svg", recipe)
            assert address, (name, recipe, sized)
            Handler.files[f"/clean/{number}-{recipe}.svg"] = ("image/svg+xml", sized)
        addresses += [origin + f"/clean/{number}-{recipe}.svg" for recipe in ["thumbnail:50", "thumbnail:50x50:fill"]]
        Handler.files[f"/frame/{number}.html"] = ("text/html", b"<!doctype html><body><div></div><script>"
            b"document.querySelector('div').innerHTML = atob('" + base64.b64encode(body) + b"')</script>")
        addresses += [origin + f"/clean/{number}{end}" for end in (".svg", ".html")] + [origin + f"/frame/{number}.html"]

    def trapped():
        return [hit for hit in Handler.hits if hit != "/favicon.ico"]

    assert trapped() == [], trapped()

    def visit(address):
        page.goto(address, wait_until="load", timeout=20_000)
        # Links are followed, and what is drawn is loaded.
        page.mouse.click(50, 50)
        page.screenshot()

    for address in addresses:
        visit(address)
        assert trapped() == [], (address, trapped())
    # The same probes reach the socket if nothing is removed.
    for number in range(len(drawings)):
        try:
            visit(origin + f"/raw/{number}.svg")
        except Exception:  # Some files lead to another page.
            pass
    reached = {hit for hit in Handler.hits if hit.startswith("/trap/")}
    assert len(reached) >= 40, sorted(reached)
    print(f"{len(drawings)} hostile files, {refused} refused, {len(reached)} of them reach the socket when they are not sanitized")


PIXELS = """async ([first, second]) => {
    const draw = async (address) => {
        const image = new Image();
        image.src = address;
        await image.decode();
        const canvas = new OffscreenCanvas(128, 128).getContext('2d');
        canvas.drawImage(image, 0, 0, 128, 128);
        return canvas.getImageData(0, 0, 128, 128).data;
    };
    const [left, right] = [await draw(first), await draw(second)];
    let drawn = 0, different = 0;
    for (let at = 0; at < left.length; at++) {
        if (left[at]) drawn++;
        if (left[at] !== right[at]) different++;
    }
    return [drawn, different];
}"""


def check_icons(page, server, origin):
    colored = sorted(path for path in ICONS.rglob("*.svg") if "symbolic" not in path.name)
    symbolic = sorted(path for path in ICONS.rglob("*-symbolic.svg"))
    icons = (colored + symbolic[:: max(1, len(symbolic) // 100)])[:100]
    assert len(icons) == 100, len(icons)
    Handler.files["/empty.html"] = ("text/html", b"<!doctype html>")
    page.goto(origin + "/empty.html")
    for number, path in enumerate(icons):
        Handler.files[f"/icon/{number}.svg"] = ("image/svg+xml", path.read_bytes())
        address, headers, body = sanitized(server, origin, f"/icon/{number}.svg")
        assert address, (path, headers, body)
        Handler.files[f"/icon/{number}-clean.svg"] = ("image/svg+xml", body)
        drawn, different = page.evaluate(PIXELS, [f"/icon/{number}.svg", f"/icon/{number}-clean.svg"])
        assert drawn > 0 and different == 0, (path, drawn, different)
    print(f"{len(icons)} icons have equal pixels")


def check_sizes(page, server, origin):
    """`fill`, `pad` and `stretch` cut and scale as `fit` of a part does."""
    body = '<rect width="100%" height="100%" fill="#0a0"/><rect x="50" y="10" width="50" height="50" fill="#00f"/>'
    Handler.files["/sizes.svg"] = ("image/svg+xml", f'<svg {NAMESPACES} width="100" height="60" viewBox="0 0 100 60">{body}</svg>'.encode())
    for recipe, size, points in [
        ("thumbnail:200", (200, 120), [((10, 10), "0,170,0,255"), ((150, 60), "0,0,255,255"), ((190, 15), "0,170,0,255")]),
        ("thumbnail:60x60:fill", (60, 60), [((10, 30), "0,170,0,255"), ((40, 30), "0,0,255,255"), ((40, 5), "0,170,0,255")]),
        ("thumbnail:120x120:fill:gravity=east", (120, 120), [((15, 60), "0,170,0,255"), ((60, 60), "0,0,255,255")]),
        ("thumbnail:100x100:pad", (100, 100), [((50, 10), "0,0,0,0"), ((10, 50), "0,170,0,255"), ((75, 50), "0,0,255,255")]),
        ("thumbnail:50x120:stretch", (50, 120), [((10, 60), "0,170,0,255"), ((40, 60), "0,0,255,255"), ((40, 10), "0,170,0,255")]),
    ]:
        address, headers, body = sanitized(server, origin, "/sizes.svg", recipe)
        assert address, body
        Handler.files["/sizes/" + recipe] = ("image/svg+xml", body)
        width, height, colors = page.evaluate("""async ([address, points]) => {
            const image = new Image();
            image.src = address;
            await image.decode();
            const canvas = new OffscreenCanvas(image.naturalWidth, image.naturalHeight).getContext('2d');
            canvas.drawImage(image, 0, 0);
            return [image.naturalWidth, image.naturalHeight, points.map(([x, y]) => canvas.getImageData(x, y, 1, 1).data.join())];
        }""", ["/sizes/" + recipe, [point for point, _ in points]])
        assert (width, height) == size, (recipe, width, height)
        assert colors == [color for _, color in points], (recipe, colors, body)
    print("sizes agree")


def main(server):
    # Two names of this machine, so that the origin of the drawings is not the page's own.
    listener = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=listener.serve_forever, daemon=True).start()
    origin = f"http://127.0.0.1:{listener.server_port}"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = browser.new_page()
        page.on("dialog", lambda dialog: Handler.hits.append("dialog") or dialog.dismiss())
        check_icons(page, server, origin)
        check_sizes(page, server, origin)
        check_hostile(page, server, origin)
        browser.close()
    listener.shutdown()
    print("done")


main(sys.argv[1])
