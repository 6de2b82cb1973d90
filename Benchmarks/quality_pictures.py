#!/usr/bin/env python3
"""The pictures that thumbnails are scored with, in four sets: photographs, drawings, graphics and text.

    Benchmarks/quality_pictures.py FOLDER [--pictures PACKAGES] [--every N]

writes them to FOLDER/photographs, drawings, graphics and text; with `--every` every Nth photograph only.

Photographs and drawings are JPEG files from packages of Debian fetched with `apt-get download` (PACKAGES has their
licences; they are used, not passed on); `--pictures` names a folder that holds the packages unpacked. Large:
photographs of 6 MP and more as they are. Medium: photographs of 1 to 5 MP, those over 3 scaled to 2 by libvips and
saved as JPEG 90. Drawn: paintings, renderings and drawings of 6 MP and more. PNG files are saved as JPEG 90 too.
Metadata is taken out of every file, so that no colour conversion or rotation takes part. Graphics and text are PNG
files that make-graphics draws.

Needs Python 3.11, PyPI Pillow, vips (Debian: libvips-tools), and what make-graphics needs.
"""
import argparse
import math
import os
import subprocess
import sys

# Packages of Debian 12 and their licences, per picture in the packages' copyright files.
PACKAGES = {
    "digikam-data": "GPL-2+",
    "focuswriter": "GPL-3+",
    "forensics-samples-files": "CC-BY-SA-4.0",
    "gdk-pixbuf-tests": "LGPL-2+",
    "libelementary-data": "BSD-2-clause",
    "libjs-jquery-backstretch": "Expat",
    "lomiri-wallpapers-16.04": "CC-BY-4.0, CC-BY-SA-3.0, CC-BY-SA-4.0, CC0-1.0",
    "lomiri-wallpapers-20.04": "CC-BY-4.0, CC-BY-SA-3.0, CC-BY-SA-4.0, CC0-1.0",
    "lxqt-themes": "LGPL-2.1+",
    "mate-backgrounds": "GPL-2+, CC-BY-SA-4.0",
    "palapeli-data": "GPL-2+",
    "plasma-workspace-wallpapers": "GPL-2+, LGPL-3, CC-BY-SA-4.0",
    "tuxtype-data": "GPL-2, public domain",
    "ukui-wallpapers": "CC-BY-SA-3.0",
}
# The same of Debian 13.
NEWER_PACKAGES = {"budgie-backgrounds": "CC0-1.0"}


def within(folder, *names, suffix=".jpg"):
    return [folder.format(name) + ("" if "." in name else suffix) for name in names]


BACKGROUNDS = "usr/share/backgrounds/{}"
PLASMA = "usr/share/wallpapers/{}/contents/images/"
LXQT = "usr/share/lxqt/wallpapers/{}"
LARGE = [
    *within(
        BACKGROUNDS, "Bridge_by_Sander_Klootwijk", "Dragonfly_by_Bolly", "Kleiber_by_Lukas_Baubkus",
        "Wine_by_Jakkub_Mede", "aitzgorri_by_Aitzol_Berasategi", "analogpattern_by_Peter_Nerlich",
        "free_by_Peter_Nerlich", "friends_by_Aitzol_Berasategi", "greentock_by_Peter_Nerlich",
        "life_by_Aitzol_Berasategi", "picosdeeuropa_by_Aitzol_Berasategi", "seeding_by_Clements_Engelhardt",
        "sunset_by_Aitzol_Berasategi"),
    *within(
        BACKGROUNDS, "budgie/beacon-street-sunset", "budgie/blue-periwinkle", "budgie/canyon-wren",
        "budgie/casa-mila", "budgie/extreme-desert-hike", "budgie/high-trestle-trail", "budgie/lake-sherburne",
        "budgie/oakland-zoo-otters", "budgie/perched-osprey", "budgie/piazza-gae-aulenti", "budgie/roman-colosseum",
        "budgie/singaporean-cityscape", "budgie/tea-gardens"),
    *within(
        "usr/share/forensics-samples/original-files/{}", "pic1/IMG_20200827_231612", "pic2/IMG_20191224_234846",
        "pic2/IMG_20200124_231153", "pic2/IMG_20200608_111614"),
    *within("usr/share/focuswriter/themes/images/{}", "bitterskies", "enchantment", "spygames", "tranquility"),
    *within(LXQT, "after-the-rain", "appleflower.png", "butterfly.png", "flowers.png"),
    "usr/libexec/installed-tests/gdk-pixbuf/issue70.jpg",
    "usr/share/digikam/about/images/body-background.jpg",
    "usr/share/elementary/images/insanely_huge_test_image.jpg",
]
MEDIUM = [
    *within(
        BACKGROUNDS, "Picture_0B_by_freespace", "Picture_1A_by_freespace", "mate/nature/Blinds", "mate/nature/Dune",
        "mate/nature/Garden", "mate/nature/LadyBird", "mate/nature/RainDrops", "mate/nature/Storm",
        "mate/nature/TwoWings", "mate/nature/Wood", "mate/nature/YellowFlower"),
    *within(
        PLASMA + "2560x1600.jpg", "BytheWater", "ColdRipple", "ColorfulCups", "DarkestHour", "EveningGlow",
        "FallenLeaf", "Grey", "Kite", "OneStandsOut", "Path", "summer_1am", suffix=""),
    *within(
        LXQT, "Butterfly-Kenneth-Wimer", "Valendas.png", "beam.png", "cloud.png", "drop.png", "fog",
        "this-is-not-windows"),
    *within("usr/share/doc/libjs-jquery-backstretch/examples/{}", "dome", "pot-holder", "sample1_1920", "sample2_1920"),
    *within(
        "usr/share/palapeli/collection/{}", "cincinnati-bridge", "citrus-fruits", "european-honey-bee",
        "panther-chameleon-female"),
    *within("usr/share/tuxtype/images/{}", *(f"kcas{number}" for number in range(12))),
]
DRAWN = [
    *within(
        BACKGROUNDS, "Fossa_by_Jasper_Roks", "Infinite-Sea_by_Aury88", "Painting-Colors_by__herobrine7gamer", "rhythm",
        "string", "the-mouse", "umang_by_Abhishek_Mudgal", "mate/abstract/Elephants_5640x3172"),
    *within(PLASMA + "5120x2880.jpg", "Honeywave", "SafeLanding", "Shell", "Volna", suffix=""),
]
PICTURES = {"large": LARGE, "medium": MEDIUM, "drawn": DRAWN}
KINDS = (*PICTURES, "graphics", "text")
HERE = os.path.dirname(os.path.abspath(__file__))


def fetch(folder):
    """Downloads and unpacks the packages, those that are there already excepted."""
    def missing(packages):
        return [name for name in packages if not os.path.exists(os.path.join(folder, "usr/share/doc", name))]

    def unpack(packages, *options):
        for package in packages:
            subprocess.run(
                ["apt-get", *options, "download", package], cwd=folder, check=True, stdout=subprocess.DEVNULL)
            found = [name for name in os.listdir(folder) if name.startswith(package + "_") and name.endswith(".deb")]
            subprocess.run(["dpkg-deb", "-x", os.path.join(folder, found[0]), folder], check=True)

    unpack(missing(PACKAGES))
    if newer := missing(NEWER_PACKAGES):
        unpack(newer, *newer_debian(os.path.join(folder, "debian-13")))


def newer_debian(folder):
    """Options for apt-get to see the packages of Debian 13, on the mirror in use, and nothing else."""
    for name in ("lists/partial", "cache"):
        os.makedirs(os.path.join(folder, name), exist_ok=True)
    shown = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Identifier: Packages", "Label: Debian"],
        check=True, capture_output=True, text=True)
    with open(os.path.join(folder, "sources.list"), "w", encoding="utf-8") as file:
        file.write(
            "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] "
            f"{shown.stdout.split()[0]} trixie main\n")
    options = ["-o", "Dir::Etc::sourceparts=-"]
    for name, value in ("Etc::sourcelist", "sources.list"), ("State::Lists", "lists"), ("Cache", "cache"):
        options += ["-o", f"Dir::{name}={os.path.join(folder, value)}"]
    subprocess.run(["apt-get", *options, "update"], check=True, stdout=subprocess.DEVNULL)
    return options


def bare(data):
    """A JPEG file without its APP1…APP13 and comment segments (EXIF, XMP, ICC); all else as it was."""
    out, place = bytearray(data[:2]), 2
    while data[place] == 0xFF and data[place + 1] != 0xDA:
        marker, end = data[place + 1], place + 2 + int.from_bytes(data[place + 2:place + 4], "big")
        if not (0xE1 <= marker <= 0xED or marker == 0xFE):
            out += data[place:end]
        place = end
    return bytes(out + data[place:])


def photographed(kind, source, pictures, path):
    """Writes the JPEG file of a picture of a package."""
    from PIL import Image
    Image.MAX_IMAGE_PIXELS = None
    original = os.path.join(pictures, source)
    width, height = Image.open(original).size
    scale = math.sqrt(2e6 / (width * height)) if kind == "medium" and width * height > 3e6 else 1
    partial = f"{path}.{os.getpid()}.jpg"
    if scale < 1 or source.endswith(".png"):
        subprocess.run(["vips", "resize", original, partial + "[Q=90,strip]", str(scale)], check=True)
        original = partial
    with open(original, "rb") as file:
        data = bare(file.read())
    with open(partial, "wb") as file:
        file.write(data)
    os.replace(partial, path)


def prepare(folder, pictures=None, every=1, kinds=KINDS):
    """The files of each of KINDS, {kind: [path]}, making those that are not there yet.

    With `every`, only every Nth of the large and of the medium photographs.
    """
    os.makedirs(folder, exist_ok=True)
    chosen = {
        kind: PICTURES[kind][::every if kind != "drawn" else 1] for kind in kinds if kind in PICTURES}
    if chosen and not pictures:
        pictures = os.path.join(folder, "packages")
        os.makedirs(pictures, exist_ok=True)
        fetch(pictures)
    result = {}
    for kind, sources in chosen.items():
        into = os.path.join(folder, "drawings" if kind == "drawn" else "photographs")
        os.makedirs(into, exist_ok=True)
        result[kind] = []
        for source in sources:
            # The names of Plasma's files tell their size only.
            parts = source.split("/")
            path = os.path.join(into, (parts[3] if "contents" in parts else parts[-1][:-4]) + ".jpg")
            result[kind].append(path)
            if not os.path.exists(path):
                photographed(kind, source, pictures, path)
    if not {"graphics", "text"}.isdisjoint(kinds):
        made = subprocess.run(
            [sys.executable, os.path.join(HERE, "make-graphics"), folder], check=True, capture_output=True, text=True)
        for kind in {"graphics", "text"}.intersection(kinds):
            result[kind] = [
                os.path.join(folder, line.split(":")[0] + ".png")
                for line in made.stdout.splitlines() if line.startswith(kind + "/")]
    return result


def main():
    parser = argparse.ArgumentParser(description="Writes the pictures that thumbnails are scored with.")
    parser.add_argument("folder")
    parser.add_argument("--pictures", help="folder with the packages unpacked (default: FOLDER/packages, downloaded)")
    parser.add_argument("--every", type=int, default=1, help="take every Nth photograph (default 1)")
    options = parser.parse_args()
    for kind, files in prepare(os.path.abspath(options.folder), options.pictures, options.every).items():
        print(f"{kind}: {len(files)}")


if __name__ == "__main__":
    main()
