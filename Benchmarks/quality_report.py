"""The tables and the plot of run-quality."""
SETS = {
    "Photographs": ("large", "medium"), "Drawings": ("drawn",), "Graphics": ("graphics",), "Text": ("text",)}
JUDGES = {"linear": "linear light", "gamma": "gamma", "chromium": "Chromium", "worse": "worse of the first two"}


def mean(values):
    return sum(values) / len(values)


def methods_of(cases):
    """Every method in the cases, in the order of the first that has it."""
    return list(dict.fromkeys(name for case in cases.values() for name in case["scores"]))


def of_set(cases, kinds):
    """The cases of a set: {(kind, size): case}."""
    named = {tuple(name.rsplit("-", 1)): case for name, case in cases.items()}
    return {(kind, size): case for (kind, size), case in named.items() if kind in kinds}


def over_set(cases, kinds, method):
    """All of a method's scores of a set, by judge, and the mean of its CPU ratios; None for what it has not."""
    found = list(of_set(cases, kinds).values())
    if not all(method in case["scores"] for case in found):
        return None, None
    scores = {judge: [mark for case in found for mark in case["scores"][method][judge]] for judge in JUDGES}
    ratios = [case["cpu"][method] for case in found if method in case["cpu"]]
    return scores, mean(ratios) if ratios else None


def row(*cells):
    return "| " + " | ".join(cells) + " |"


def strong(name):
    return f"**{name}**" if name.startswith("ours") else name


def summary(cases):
    """Markdown: for each set the worse of linear and gamma and the CPU, and the mean over the sets."""
    present = {title: kinds for title, kinds in SETS.items() if of_set(cases, kinds)}
    lines = [row("", *(cell for title in present for cell in (title.lower(), "CPU")), "mean of the sets")]
    lines.append("|---" * (2 + 2 * len(present)) + "|")
    for name in methods_of(cases):
        cells, means = [], []
        for kinds in present.values():
            scores, ratio = over_set(cases, kinds, name)
            means += [mean(scores["worse"])] if scores else []
            cells += [f"{means[-1]:.1f}" if scores else "", f"{ratio:.2f}" if ratio else ""]
        lines.append(row(strong(name), *cells, f"{mean(means):.1f}" if len(means) == len(present) else ""))
    return "\n".join(lines)


def details(cases):
    """Markdown: for each case the mean (worst) by each judge, and the CPU."""
    lines = [row("", *JUDGES.values(), "CPU"), "|---" * (2 + len(JUDGES)) + "|"]
    for name, case in cases.items():
        kind, size = name.rsplit("-", 1)
        lines.append(row(f"*{kind} → {size} px, {len(case['files'])} pictures*", *[""] * (1 + len(JUDGES))))
        for method, scores in case["scores"].items():
            cells = [f"{mean(scores[judge]):.1f} ({min(scores[judge]):.1f})" for judge in JUDGES]
            lines.append(row(strong(method), *cells, f"{case['cpu'][method]:.2f}" if method in case["cpu"] else ""))
    return "\n".join(lines)


def write_into(path, cases):
    """Replaces the tables of a document: those between `<!-- quality: summary -->` or `details` and `<!-- end -->`."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    for name, table in (("summary", summary(cases)), ("details", details(cases))):
        start, found, rest = text.partition(f"<!-- quality: {name} -->\n")
        if found:
            text = start + found + table + "\n<!-- end -->" + rest.partition("<!-- end -->")[2]
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


# Colours in light and in dark mode, by class.
COLOURS = {
    "paper": ("#ffffff", "#0d1117"), "label": ("#444c56", "#adbac7"), "strong": ("#1f2328", "#f0f3f6"),
    "grid": ("#d8dee4", "#30363d"), "linear": ("#0969da", "#58a6ff"), "gamma": ("#bc4c00", "#f0883e"),
    "chromium": ("#1a7f37", "#56d364"), "span": ("#afb8c1", "#57606a")}
# Shapes tell the judges apart without colour; each is drawn about (x, y).
MARKS = {
    "linear": "<circle class='linear' cx='{x:.1f}' cy='{y:.1f}' r='4.5'/>",
    "gamma": "<path class='gamma' d='M{x:.1f} {y:.1f}m-4-4h8v8h-8z'/>",
    "chromium": "<path class='chromium' d='M{x:.1f} {y:.1f}m0-5.5l5 9h-10z'/>"}
TOLD = {
    "linear": "Lanczos in linear light", "gamma": "Lanczos in gamma", "chromium": "Chromium's own scaling"}


def plot(cases, path):
    """A panel a set: a row a program, its mean score by each judge, and its CPU ratio."""
    names = [name for name in methods_of(cases) if any(name in case["cpu"] for case in cases.values())]
    sets = [(title, kinds) for title, kinds in SETS.items() if of_set(cases, kinds)]
    left, panel, gap, line, between = 168, 270, 64, 22, 66
    width, height = left + 2 * (panel + gap), 62
    style = "".join(f".{name}{{fill:{light}}}" for name, (light, _) in COLOURS.items())
    dark = "".join(f".{name}{{fill:{dark}}}" for name, (_, dark) in COLOURS.items())
    strokes = ["".join(f".{name}{{stroke:{COLOURS[name][mode]}}}" for name in ("grid", "span")) for mode in (0, 1)]
    out = []

    def text(x, y, content, anchor="start", kind="label"):
        out.append(f"<text class='{kind}' x='{x:.1f}' y='{y:.1f}' text-anchor='{anchor}'>{content}</text>")

    text(16, 22, "Mean score against")
    for judge, at in zip(TOLD, (150, 322, 464)):
        out.append(MARKS[judge].format(x=at, y=18))
        text(at + 11, 22, TOLD[judge])
    text(width - 12, 22, "CPU: × vipsthumbnail's", "end")
    for pair in (sets[:2], sets[2:]):
        shown = [name for name in names if any(over_set(cases, kinds, name)[0] for _, kinds in pair)]
        floor = height + len(shown) * line
        for side, (title, kinds) in enumerate(pair):
            start = left + side * (panel + gap)
            count = sum(len(case["files"]) for case in of_set(cases, kinds).values())
            text(start, height - 10, f"{title}, {count} thumbnails", kind="strong")
            text(start + panel + 52, height - 10, "CPU", "end")
            for value in range(0, 101, 20):
                x = start + value / 100 * panel
                out.append(f"<path class='grid' d='M{x:.1f} {height}V{floor}'/>")
                text(x, floor + 15, value, "middle")
            text(start + panel / 2, floor + 31, "SSIMULACRA2 (100: the reference itself)", "middle")
            for index, name in enumerate(shown):
                y = height + (index + 0.5) * line
                if side == 0:
                    text(left - 14, y + 4, name, "end", "strong" if name.startswith("ours") else "label")
                scores, ratio = over_set(cases, kinds, name)
                if not scores:
                    continue
                places = {judge: start + min(100, max(0, mean(scores[judge]))) / 100 * panel for judge in MARKS}
                out.append(f"<path class='span' d='M{min(places.values()):.1f} {y:.1f}H{max(places.values()):.1f}'/>")
                out.extend(mark.format(x=places[judge], y=y) for judge, mark in MARKS.items())
                text(start + panel + 52, y + 4, f"{ratio:.2f} ×" if ratio else "", "end")
        height = floor + between
    height -= between - 44
    out[:0] = [
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' width='{width}' height='{height}'>",
        "<title>Scores of thumbnails by three judges, over four sets of pictures</title>",
        f"<style>text{{font:12px sans-serif}}.strong{{font-weight:bold}}{style}{strokes[0]}.span{{stroke-width:2}}"
        f"@media(prefers-color-scheme:dark){{{dark}{strokes[1]}}}</style>",
        f"<rect class='paper' width='{width}' height='{height}'/>"]
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(out) + "\n</svg>\n")
