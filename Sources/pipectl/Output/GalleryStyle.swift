/// The style sheet of the contact sheet. The style sheet is inline, so that the file can be opened from disk.
enum GalleryStyle {
    static let css = """
        :root{color-scheme:light dark;--page:#f4f4f1;--card:#fff;--ink:#1d1d1f;--soft:#6c6c70;--line:#e2e2dc;\
        --a:#ececea;--b:#fff;--accent:#3566c8;--bad:#b3261e;--badpage:#fdf0ee;--hit:#1d7a46;--new:#8a5a00}
        @media(prefers-color-scheme:dark){:root{--page:#141416;--card:#1e1e21;--ink:#ececee;--soft:#98989f;\
        --line:#2f2f34;--a:#2a2a2e;--b:#232327;--accent:#8ab0ff;--bad:#ff8a80;--badpage:#2c1b1a;--hit:#6fd39b;\
        --new:#f0c36a}}
        *{box-sizing:border-box}
        body{margin:0;padding:32px clamp(16px,4vw,56px) 64px;display:flex;flex-direction:column;gap:28px;\
        background:var(--page);color:var(--ink);font:15px/1.45 system-ui,-apple-system,"Segoe UI",sans-serif}
        header,.first{order:-1}
        h1{margin:0;font-size:26px;font-weight:650;letter-spacing:-.02em}
        header p{margin:4px 0 0;color:var(--soft)}
        .counts{display:flex;flex-wrap:wrap;gap:10px;margin:0;padding:0;list-style:none}
        .counts li{padding:8px 14px;border:1px solid var(--line);border-radius:10px;background:var(--card);\
        color:var(--soft);font-size:13px}
        .counts b{display:block;color:var(--ink);font-size:19px;font-weight:600;font-variant-numeric:tabular-nums}
        .counts .bad b,.counts .bad a{color:var(--bad)}
        h2{margin:0 0 12px;font-size:14px;font-weight:600;overflow-wrap:anywhere}
        .grid{display:grid;grid-template-columns:repeat(auto-fill,minmax(220px,1fr));gap:16px}
        figure{content-visibility:auto;contain-intrinsic-size:auto 320px;margin:0;display:flex;flex-direction:column;overflow:hidden;border:1px solid var(--line);\
        border-radius:12px;background:var(--card)}
        figure>a{display:flex;align-items:center;justify-content:center;height:220px;padding:12px;\
        background:repeating-conic-gradient(var(--a) 0 25%,var(--b) 0 50%) 0 0/20px 20px}
        figure>a:focus-visible{outline:3px solid var(--accent);outline-offset:-3px}
        img{display:block;width:auto;height:auto;max-width:100%;max-height:196px}
        figcaption{padding:10px 14px 12px;border-top:1px solid var(--line);font-size:13px}
        .name{font-weight:600;overflow-wrap:anywhere}
        code{display:block;margin:2px 0 6px;color:var(--soft);font:12px/1.4 ui-monospace,Menlo,Consolas,monospace;\
        overflow-wrap:anywhere}
        .facts{display:flex;flex-wrap:wrap;gap:4px 10px;color:var(--soft);font-variant-numeric:tabular-nums}
        .memory,.disk,.remote{color:var(--hit)}.rendered{color:var(--new)}
        .failed{border-color:var(--bad);background:var(--badpage)}
        .failed .mark{display:flex;align-items:center;justify-content:center;height:220px;color:var(--bad);\
        font-size:44px}
        .failed p{margin:4px 0 0;color:var(--bad);overflow-wrap:anywhere}
        """
}
