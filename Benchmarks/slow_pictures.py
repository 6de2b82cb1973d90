"""Pictures that cost little by their header and may take long to render, for `run-slow-pictures`.

`shapes()` gives name, bytes and recipe of each. All are made here; `vips` and `cjxl` make the small pictures they are based on.
"""
import functools, os, random, struct, subprocess, tempfile, zlib

RECIPE = "thumbnail:48,jpeg"


@functools.cache
def base(suffix, width=64, height=64, options=""):
    """A small photograph-like picture that vips saves, such as `.jpg` with options `[interlace]`."""
    with tempfile.TemporaryDirectory() as folder:
        noise, out = os.path.join(folder, "noise.png"), os.path.join(folder, "out" + suffix)
        subprocess.run(["vips", "gaussnoise", folder + "/n.v", str(width), str(height), "--seed", "1"], check=True)
        subprocess.run(["vips", "cast", folder + "/n.v", noise, "uchar"], check=True)
        subprocess.run(["vips", "copy", noise, out + options], check=True, stderr=subprocess.DEVNULL)
        return open(out, "rb").read()


@functools.cache
def jxl(*options):
    with tempfile.TemporaryDirectory() as folder:
        open(folder + "/in.png", "wb").write(png(64, 64))
        subprocess.run(["cjxl", folder + "/in.png", folder + "/out.jxl", "--container=1", *options], check=True, capture_output=True)
        return open(folder + "/out.jxl", "rb").read()


# JPEG (ITU-T T.81)

def segment(marker, data): return struct.pack(">BBH", 0xFF, marker, len(data) + 2) + data


def jpeg(extra, suffix=b"", **kinds):
    whole = base(".jpg", **kinds)
    return whole[:2] + extra + whole[2:] + suffix


def scans(count, edge):
    """A progressive JPEG whose last scan is repeated."""
    whole = base(".jpg", edge, edge, "[interlace]")
    last = whole.rindex(b"\xff\xda")
    return whole[:last] + whole[last:-2] * count + whole[-2:]


def flat_scans(count, edge):
    """A progressive grey JPEG of one DC scan of nothing but zeros, repeated: a few bits for each million pixels."""
    frame = segment(0xC2, struct.pack(">BHHB", 8, edge, edge, 1) + b"\1\x11\0")
    table = segment(0xDB, b"\0" + b"\1" * 64)
    codes = segment(0xC4, b"\0" + b"\1" + b"\0" * 15 + b"\0") + segment(0xC4, b"\x10" + b"\0\0\1" + b"\0" * 13 + b"\xe0")
    first = segment(0xDA, b"\1\1\0\0\0\0") + b"\0" * ((edge // 8) ** 2 // 8 + 8)
    blocks = (edge // 8) ** 2
    runs = segment(0xDA, b"\1\1\0\1\x3f\0") + b"\0" * (blocks // 16384 * 17 // 8 + 16)
    return b"\xff\xd8" + table + frame + codes + first + runs * (count - 1) + b"\xff\xd9"


def tiff_block(entries, tail=b""):
    """A TIFF of one directory (TIFF 6.0 §2), little-endian."""
    return b"II*\0\x08\0\0\0" + struct.pack("<H", len(entries)) + b"".join(struct.pack("<HHII", *e) for e in entries) + b"\0\0\0\0" + tail


def exif_of_arrays(kind, count, length):
    """EXIF whose entries are the same array again and again."""
    entries = [(0x9000 + n, kind, length, 8) for n in range(count)]
    return b"Exif\0\0" + tiff_block(entries, b"\1" * 100)[:65000].ljust(65000, b"\1")


def jpegs():
    yield "40,000 APP segments", jpeg(segment(0xE5, b"12345678") * 40_000)
    yield "40,000 APP segments of a kilobyte", jpeg(segment(0xE5, b"1" * 1000) * 40_000)
    yield "40,000 comments", jpeg(segment(0xFE, b"12345678") * 40_000)
    yield "40,000 Exif segments", jpeg(segment(0xE1, b"Exif\0\0" + tiff_block([(0x112, 3, 1, 1)])) * 40_000)
    yield "1,500 Exif segments of 64 kB", jpeg(segment(0xE1, exif_of_arrays(3, 10, 100)) * 1500)
    yield "40,000 XMP segments", jpeg(segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0<x/>") * 40_000)
    yield "40,000 ICC segments", jpeg(segment(0xE2, b"ICC_PROFILE\0\1\1" + b"1" * 8) * 40_000)
    yield "40,000 JUMBF segments", jpeg(segment(0xEB, b"JP\0\1\0\0\0\1\0\0\0\x10jumb" + b"0" * 8) * 40_000)
    yield "40,000 Photoshop segments", jpeg(segment(0xED, b"Photoshop 3.0\0" + b"8BIM\4\4\0\0\0\0\0\0") * 40_000)
    yield "300,000 quantisation tables", jpeg(segment(0xDB, b"\0" + b"\1" * 64) * 300_000)
    yield "1,000,000 restart intervals", jpeg(segment(0xDD, b"\0\0") * 1_000_000)
    yield "1,000,000 segments without length", jpeg(b"\xff\xe5\0\0" * 1_000_000)
    yield "30 MB of fill bytes", jpeg(b"\xff" * 30_000_000)
    yield "30 MB between two segments", jpeg(b"\0" * 30_000_000)
    yield "Exif of 5,000 overlapping arrays", jpeg(segment(0xE1, exif_of_arrays(3, 5000, 30_000)))
    yield "Exif of 5,000 overlapping fractions", jpeg(segment(0xE1, exif_of_arrays(5, 5000, 8000)))
    yield "60 scans of 12 MP", scans(50, 3464)
    yield "64 empty scans of 81 MP", flat_scans(64, 9000)
    yield "20 MB behind it", jpeg(segment(0xE2, b"MPF\0"), b"urn:com:apple:photo:202" * 900_000)


# PNG (W3C PNG)

SIGNATURE = b"\x89PNG\r\n\x1a\n"


def chunk(kind, data): return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def ihdr(width, height, depth=8, colour=0, interlace=0): return chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlace))


def png(width, height, extra=b"", data=None, **kinds):
    data = zlib.compress(b"\0" * ((width * {0: 1, 2: 3, 6: 4}[kinds.get("colour", 0)] * kinds.get("depth", 8) // 8 + 1) * height)) if data is None else data
    return SIGNATURE + ihdr(width, height, **kinds) + extra + chunk(b"IDAT", data) + chunk(b"IEND", b"")


@functools.cache
def bomb(length): return zlib.compress(b"\0" * length, 9)


def tiny_blocks(count):
    """A zlib stream of blocks with codes of their own and a single literal each."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 15, 9)
    one = packer.compress(bytes(random.Random(1).choices(range(40), k=300))) + packer.flush(zlib.Z_FULL_FLUSH)
    return one[:2] + one[2:] * count


def pngs():
    yield "500 zTXt of 8 MB", png(64, 64, chunk(b"zTXt", b"a\0\0" + bomb(7_900_000)) * 500)
    yield "500 iTXt of 8 MB", png(64, 64, chunk(b"iTXt", b"a\0\1\0\0\0" + bomb(7_900_000)) * 500)
    yield "500 XMP packets of 8 MB", png(64, 64, chunk(b"iTXt", b"XML:com.adobe.xmp\0\1\0\0\0" + bomb(7_900_000)) * 500)
    yield "500 zTXt behind the pixels", png(64, 64)[:-12] + chunk(b"zTXt", b"a\0\0" + bomb(7_900_000)) * 500 + chunk(b"IEND", b"")
    yield "500 profiles of 30 MB", png(64, 64, chunk(b"iCCP", b"a\0\0" + bomb(30_000_000)) * 500)
    yield "1,000,000 tEXt", png(64, 64, chunk(b"tEXt", b"a\0b") * 1_000_000)
    yield "30,000 tEXt of a kilobyte", png(64, 64, chunk(b"tEXt", b"a\0" + b"b" * 1000) * 30_000)
    yield "2,000,000 unknown chunks", png(64, 64, chunk(b"abCd", b"") * 2_000_000)
    yield "2,000,000 empty IDAT", SIGNATURE + ihdr(64, 64) + chunk(b"IDAT", b"") * 2_000_000 + png(64, 64)[33:]
    yield "1,000,000 times", png(64, 64, chunk(b"tIME", b"\x07\xe8\1\1\0\0\0") * 1_000_000)
    yield "100,000 palettes suggested", png(64, 64, b"".join(chunk(b"sPLT", b"a%d\0\x08" % n + b"\0" * 60) for n in range(100_000)))
    yield "1,000,000 frames", png(64, 64, chunk(b"acTL", struct.pack(">II", 1_000_000, 0)) + chunk(b"fcTL", b"\0" * 26) * 1_000_000)
    yield "20 MB of empty deflate blocks", png(64, 64, data=b"\x78\1" + b"\0\0\0\xff\xff" * 4_000_000 + zlib.compress(b"\0" * 65 * 64)[2:])
    yield "100,000 deflate codes behind the pixels", png(64, 64, data=tiny_blocks(100_000))
    yield "16,000,000 × 1", png(16_000_000, 1)
    yield "1 × 16,000,000 interlaced", png(1, 16_000_000, interlace=1)
    yield "a broken checksum behind 1,000,000 IDAT", SIGNATURE + ihdr(64, 64) + (chunk(b"IDAT", b"")[:-1] + b"1") * 1_000_000 + png(64, 64)[33:]
    yield "48 MP, 16 bits, interlaced", png(8000, 6000, colour=6, depth=16, interlace=1, data=zlib.compress(b"\0" * (8 * 8000 * 6000 + 8000 * 8), 1))


# GIF (GIF89a)

def gif(extra=b"", frame=b"", count=1, width=64, height=64):
    one = frame or b"\x2c\0\0\0\0\2\0\2\0\0\2\2\x44\x0a\0"
    return b"GIF89a" + struct.pack("<HH", width, height) + b"\x80\0\0" + b"\0\0\0\xff\xff\xff" + extra + one * count + b"\x3b"


def gifs():
    yield "2,000,000 comments", gif(b"\x21\xfe\1a\0" * 2_000_000)
    yield "10,000,000 sub-blocks of a comment", gif(b"\x21\xfe" + b"\1a" * 10_000_000 + b"\0")
    yield "1,000,000 graphic controls", gif(b"\x21\xf9\4\0\0\0\0\0" * 1_000_000)
    yield "90,000 frames", gif(count=90_000)
    yield "90,000 frames that clear 1,000 × 1,000", gif(frame=b"\x21\xf9\4\x08\0\0\0\0\x2c\0\0\0\0\2\0\2\0\0\2\2\x44\x0a\0", count=90_000, width=1000, height=1000)
    yield "20 MB between blocks", gif(b"\0" * 20_000_000)
    yield "20 MB of clear codes", gif(frame=b"\x2c\0\0\0\0\x40\0\x40\0\0\2" + (b"\xff" + b"\x24\x49\x92" * 85) * 80_000 + b"\0")
    yield "10,000,000 sub-blocks of pixels", gif(frame=b"\x2c\0\0\0\0\x40\0\x40\0\0\2" + b"\1\x24" * 10_000_000 + b"\0")


# TIFF (TIFF 6.0)

def tiff(entries, strip=b""):
    """The directory of a grey picture of 64 × 64 with further entries, its strip, and where this begins."""
    given = {e[0] for e in entries}
    own = [(256, 4, 1, 64), (257, 4, 1, 64), (258, 3, 1, 8), (259, 3, 1, 1), (262, 3, 1, 1), (277, 3, 1, 1), (278, 4, 1, 64)]
    strip = strip or b"\7" * 4096
    plain = [e for e in own if e[0] not in given] + list(entries)
    at = 8 + 2 + 12 * (len(plain) + 2) + 4
    plain += [e for e in [(273, 4, 1, at), (279, 4, 1, len(strip))] if e[0] not in given]
    plain.sort()
    block = b"II*\0\x08\0\0\0" + struct.pack("<H", len(plain)) + b"".join(struct.pack("<HHII", *e) for e in plain)
    return block.ljust(at - 4, b"\0"), strip, at


def directories(count):
    """Pages of 1 × 1, all with the same pixel."""
    block, strip, at = tiff([])
    start = at + len(strip)
    one = struct.pack("<H", 5) + b"".join(struct.pack("<HHII", *e) for e in [(256, 4, 1, 1), (257, 4, 1, 1), (258, 3, 1, 8), (273, 4, 1, at), (279, 4, 1, 1)])
    rest = b"".join(one + struct.pack("<I", start + (len(one) + 4) * (n + 1) if n + 1 < count else 0) for n in range(count))
    return block[:at - 4] + struct.pack("<I", start) + strip + rest


def tiff_file(entries, strip=b"", tail=b""):
    block, strip, _ = tiff(entries, strip)
    return block + b"\0" * 4 + strip + tail


def arrays(tag, count):
    """An entry of `count` numbers that lie behind the strip."""
    return tiff_file([(tag, 4, count, 8 + 2 + 12 * 10 + 4 + 4096)], tail=b"\x10\0\0\0" * count)


def tiffs():
    yield "600,000 directories", directories(600_000)
    yield "9,000 directories", directories(9_000)
    yield "65,000 unknown tags", tiff_file([(40_000 + n % 25_000, 3, 1, 0) for n in range(65_000)])
    yield "5,000,000 SubIFDs", arrays(330, 5_000_000)
    yield "5,000,000 strips", arrays(273, 5_000_000)
    yield "a deflated strip of 1 GB", tiff_file([(259, 3, 1, 8)], strip=bomb(1_000_000_000))
    yield "a strip of a JPEG of 40,000 segments", tiff_file([(259, 3, 1, 7)], strip=jpeg(segment(0xE5, b"12345678") * 40_000))
    yield "5,000 overlapping arrays", tiff_file([(50_000 + n, 3, 30_000, 8) for n in range(5000)], tail=b"\0" * 60_000)
    yield "a megabyte of XMP, 60,000 times", tiff_file([(700, 1, 1_000_000, 8)] * 60_000, tail=b"<" * 400_000)


# WebP (RFC 9649)

def riff(kind, data): return kind + struct.pack("<I", len(data)) + data + b"\0" * (len(data) & 1)


def webp(chunks, flags=0, suffix=b""):
    plain = base(".webp")
    at = plain.index(b"VP8 ")
    picture = plain[at:at + 8 + struct.unpack("<I", plain[at + 4:at + 8])[0]]
    body = b"WEBP" + riff(b"VP8X", bytes([flags, 0, 0, 0]) + b"\x3f\0\0\x3f\0\0") + chunks + picture + b"\0" * (len(picture) & 1) + suffix
    return b"RIFF" + struct.pack("<I", len(body)) + body


def animated(count, edge):
    plain = base(".webp", 2, 2)
    at = plain.index(b"VP8 ")
    frame = riff(b"ANMF", b"\0" * 6 + b"\1\0\0\1\0\0" + b"\x64\0\0\0" + plain[at:])
    size = struct.pack("<I", edge - 1)[:3]
    body = b"WEBP" + riff(b"VP8X", b"\2\0\0\0" + size * 2) + riff(b"ANIM", b"\0" * 6) + frame * count
    return b"RIFF" + struct.pack("<I", len(body)) + body


def webps():
    yield "2,000,000 unknown chunks", webp(b"abcd\0\0\0\0" * 2_000_000)
    yield "2,000,000 chunks behind it", webp(b"", suffix=b"abcd\0\0\0\0" * 2_000_000)
    yield "1,000,000 Exif chunks", webp(riff(b"EXIF", b"ab") * 1_000_000, 8)
    yield "500,000 XMP chunks", webp(riff(b"XMP ", b"<x/>") * 500_000, 4)
    yield "200,000 frames", animated(200_000, 2)
    yield "5,000 frames of 3,000 × 3,000", animated(5000, 3000)
    yield "Exif of 5,000 overlapping arrays", webp(b"", 8, riff(b"EXIF", exif_of_arrays(3, 5000, 30_000)[6:]))


# AVIF and HEIF (ISO/IEC 14496-12, 23008-12)

def box(kind, data): return struct.pack(">I", len(data) + 8) + kind + data


def avif(between=b"", behind=b"", into=None):
    """`into` adds to a box of `meta`, by a pair of its path and the bytes; offsets in `iloc` follow."""
    whole = base(".avif")
    size = struct.unpack(">I", whole[:4])[0]
    length = struct.unpack(">I", whole[size:size + 4])[0]
    meta = bytearray(whole[size:size + length])
    shift = len(between)
    if into:
        path, extra = into
        shift += len(extra)
        at = 0
        for depth, kind in enumerate([b"meta"] + path):
            at = meta.index(kind, at)
            meta[at - 4:at] = struct.pack(">I", struct.unpack(">I", meta[at - 4:at])[0] + len(extra))
        end = at - 4 + struct.unpack(">I", meta[at - 4:at])[0] - len(extra)
        meta[end:end] = extra
    at = meta.index(b"iloc") + 4
    # vips writes version 0 or 1 with offsets of four bytes; the picture's place moves.
    start = whole.index(b"mdat") + 4
    for place in range(at, at + 60):
        if struct.unpack(">I", meta[place:place + 4])[0] in range(start, len(whole)):
            meta[place:place + 4] = struct.pack(">I", struct.unpack(">I", meta[place:place + 4])[0] + shift)
            break
    return whole[:size] + between + bytes(meta) + whole[size + length:] + behind


def avifs():
    yield "1,000,000 free boxes", avif(box(b"free", b"") * 1_000_000)
    yield "10,000,000 free boxes", avif(box(b"free", b"") * 10_000_000)
    yield "1,000,000 free boxes behind it", avif(behind=box(b"free", b"") * 1_000_000)
    yield "100,000 meta boxes behind it", avif(behind=box(b"meta", b"\0\0\0\0") * 100_000)
    yield "1,000,000 boxes in meta", avif(into=([], box(b"free", b"") * 1_000_000))
    yield "1,000,000 properties", avif(into=([b"iprp", b"ipco"], box(b"free", b"") * 1_000_000))
    yield "300,000 item entries", avif(into=([b"iinf"], box(b"infe", b"\2\0\0\0\0\7\0\0abcd\0") * 300_000))
    yield "50,000 data boxes", avif(box(b"mdat", b"12345678") * 50_000)


# JPEG XL, SVG, ICO and BMP

def jxls():
    whole = jxl()
    head = whole[:12 + struct.unpack(">I", whole[12:16])[0]]
    yield "1,000,000 boxes", head + box(b"free", b"") * 1_000_000 + whole[len(head):]
    yield "1,000,000 boxes behind it", whole + box(b"free", b"") * 1_000_000
    yield "2,000 compressed boxes", head + box(b"brob", b"xml " + subprocess.run(["brotli", "-c"], input=b"\0" * 8_000_000, capture_output=True).stdout) * 2000 + whole[len(head):]


def svg(inner): return (f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="64" height="64">{inner}</svg>').encode()


def uses(depth, width, leaf='<rect id="a0" width="9" height="9"/>'):
    return "<defs>" + leaf + "".join(f'<g id="a{n}">' + f'<use xlink:href="#a{n - 1}"/>' * width + "</g>" for n in range(1, depth)) + f'</defs><use xlink:href="#a{depth - 1}"/>'


def svgs():
    yield "nested uses", svg(uses(7, 8))
    yield "nested patterns", svg("<defs>" + "".join(f'<pattern id="p{n}" width=".1" height=".1"><rect width="9" height="9" fill="url(#p{n + 1})"/></pattern>' for n in range(12)) + '</defs><rect width="64" height="64" fill="url(#p0)"/>')
    yield "nested masks", svg("<defs>" + "".join(f'<mask id="m{n}"><rect width="64" height="64" fill="#fff" mask="url(#m{n + 1})"/><rect width="9" height="9" mask="url(#m{n + 1})"/></mask>' for n in range(14)) + '</defs><rect width="64" height="64" mask="url(#m0)"/>')
    yield "turbulence", svg('<filter id="f" width="64" height="64">' + '<feTurbulence baseFrequency=".3" numOctaves="200"/>' * 80 + '</filter><rect width="64" height="64" filter="url(#f)"/>')
    yield "blurs", svg('<filter id="f">' + '<feGaussianBlur stdDeviation="50"/>' * 300 + '</filter>' + '<rect width="64" height="64" filter="url(#f)"/>' * 50)
    yield "dashes", svg('<path d="M0 0H9e6" stroke="#000" stroke-dasharray=".0001"/>')
    yield "200,000 paths", svg('<path d="M0 0L64 64L0 64Z" stroke="#000"/>' * 200_000)
    yield "5,000 rules for 5,000 elements", svg("<style>" + "".join(f"g .c{n} > rect:first-child {{fill:red}}" for n in range(5000)) + "</style>" + '<g><g class="c1"><rect width="1" height="1"/></g></g>' * 5000)
    yield "a path of 8 MB", svg('<path d="M0 0' + "L64 64L0 64" * 700_000 + '" fill-rule="evenodd"/>')


def bitmaps():
    runs = b"\xff\0" * 10_000_000
    yield "bmp", "20 MB of runs beyond the edge", b"BM" + struct.pack("<IIIIiiHHIIiiII", 0, 0, 54 + 1024, 40, 1, 1, 1, 8, 1, 0, 0, 0, 0, 0) + b"\0" * 1024 + runs + b"\0\1"
    head = b"BM" + struct.pack("<IIIIiiHHIIiiII", 0, 0, 54 + 1024, 40, 8000, 8000, 1, 8, 1, 0, 0, 0, 0, 0)
    yield "bmp", "64 MP of jumps", head + b"\0" * 1024 + b"\0\2\0\1" * 7999 + b"\0\1"
    slow = next(pngs())[1]
    yield "ico", "500 zTXt of 8 MB", b"\0\0\1\0\1\0" + struct.pack("<BBBBHHII", 64, 64, 0, 0, 1, 32, len(slow), 22) + slow
    small = png(64, 64)
    yield "ico", "65,535 entries", b"\0\0\1\0\xff\xff" + struct.pack("<BBBBHHII", 64, 64, 0, 0, 1, 32, len(small), 6 + 16 * 65_535) * 65_535 + small


def shapes():
    for kind, made in (("jpg", jpegs), ("png", pngs), ("gif", gifs), ("tif", tiffs), ("webp", webps), ("avif", avifs), ("jxl", jxls), ("svg", svgs)):
        for name, data in made():
            yield kind, name, data
    yield from bitmaps()
