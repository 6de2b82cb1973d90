#include "CPage.h"

// The compiler embeds the files, so that the program requires no additional files.
#ifndef __has_embed
#error "The compiler has no #embed: build with the clang of a Swift toolchain of 6.2 or newer"
#endif
#pragma clang diagnostic ignored "-Wc23-extensions"

static const unsigned char answer_js[] = {
#embed "Web/answer.js"
};
static const unsigned char app_js[] = {
#embed "Web/app.js"
};
static const unsigned char cache_js[] = {
#embed "Web/cache.js"
};
static const unsigned char dom_js[] = {
#embed "Web/dom.js"
};
static const unsigned char draw_js[] = {
#embed "Web/draw.js"
};
static const unsigned char fields_js[] = {
#embed "Web/fields.js"
};
static const unsigned char folder_js[] = {
#embed "Web/folder.js"
};
static const unsigned char grammar_js[] = {
#embed "Web/grammar.js"
};
static const unsigned char icon_svg[] = {
#embed "Web/icon.svg"
};
static const unsigned char index_html[] = {
#embed "Web/index.html"
};
static const unsigned char score_js[] = {
#embed "Web/score.js"
};
static const unsigned char snippets_js[] = {
#embed "Web/snippets.js"
};
static const unsigned char style_css[] = {
#embed "Web/style.css"
};
static const unsigned char view_js[] = {
#embed "Web/view.js"
};
static const unsigned char dusk_webp[] = {
#embed "../../samples/originals/dusk.webp"
};
static const unsigned char meadow_jpg[] = {
#embed "../../samples/originals/meadow-small.jpg"
};
static const unsigned char balloon_webp[] = {
#embed "../../samples/originals/balloon.webp"
};

static const struct embedded_file files[] = {
    {"answer.js", answer_js, sizeof answer_js},
    {"app.js", app_js, sizeof app_js},
    {"cache.js", cache_js, sizeof cache_js},
    {"dom.js", dom_js, sizeof dom_js},
    {"draw.js", draw_js, sizeof draw_js},
    {"fields.js", fields_js, sizeof fields_js},
    {"folder.js", folder_js, sizeof folder_js},
    {"grammar.js", grammar_js, sizeof grammar_js},
    {"icon.svg", icon_svg, sizeof icon_svg},
    {"index.html", index_html, sizeof index_html},
    {"score.js", score_js, sizeof score_js},
    {"snippets.js", snippets_js, sizeof snippets_js},
    {"style.css", style_css, sizeof style_css},
    {"view.js", view_js, sizeof view_js},
};
static const struct embedded_file samples[] = {
    {"dusk.webp", dusk_webp, sizeof dusk_webp},
    {"meadow.jpg", meadow_jpg, sizeof meadow_jpg},
    {"balloon.webp", balloon_webp, sizeof balloon_webp},
};

struct embedded_files page_files_list(void) {
    return (struct embedded_files) {files, sizeof files / sizeof *files};
}

struct embedded_files page_samples_list(void) {
    return (struct embedded_files) {samples, sizeof samples / sizeof *samples};
}
