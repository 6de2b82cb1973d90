#include "CCurl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>

// curl.h defines macros with the names of these functions.
#undef curl_easy_setopt
#undef curl_easy_getinfo
#undef curl_multi_setopt

// F(result, value if the library is missing, name, parameters, arguments)
#define FUNCTIONS(F) \
    F(CURL *, NULL, curl_easy_init, (void), ()) \
    F(void, , curl_easy_cleanup, (CURL * easy), (easy)) \
    F(void, , curl_easy_reset, (CURL * easy), (easy)) \
    F(CURLcode, CURLE_FAILED_INIT, curl_easy_pause, (CURL * easy, int bits), (easy, bits)) \
    F(CURLcode, CURLE_FAILED_INIT, curl_easy_recv, (CURL * easy, void *buffer, size_t size, size_t *count), \
      (easy, buffer, size, count)) \
    F(CURLcode, CURLE_FAILED_INIT, curl_easy_send, (CURL * easy, const void *bytes, size_t size, size_t *count), \
      (easy, bytes, size, count)) \
    F(const char *, "libcurl is missing", curl_easy_strerror, (CURLcode code), (code)) \
    F(char *, "libcurl is missing", curl_version, (void), ()) \
    F(CURLM *, NULL, curl_multi_init, (void), ()) \
    F(CURLMcode, CURLM_INTERNAL_ERROR, curl_multi_cleanup, (CURLM * multi), (multi)) \
    F(CURLMcode, CURLM_INTERNAL_ERROR, curl_multi_add_handle, (CURLM * multi, CURL *easy), (multi, easy)) \
    F(CURLMcode, CURLM_INTERNAL_ERROR, curl_multi_remove_handle, (CURLM * multi, CURL *easy), (multi, easy)) \
    F(CURLMsg *, NULL, curl_multi_info_read, (CURLM * multi, int *left), (multi, left)) \
    F(CURLMcode, CURLM_INTERNAL_ERROR, curl_multi_perform, (CURLM * multi, int *running), (multi, running)) \
    F(CURLMcode, CURLM_INTERNAL_ERROR, curl_multi_poll, \
      (CURLM * multi, struct curl_waitfd others[], unsigned int count, int milliseconds, int *ready), \
      (multi, others, count, milliseconds, ready)) \
    F(CURLMcode, CURLM_INTERNAL_ERROR, curl_multi_socket_action, \
      (CURLM * multi, curl_socket_t socket, int events, int *running), (multi, socket, events, running)) \
    F(CURLMcode, CURLM_INTERNAL_ERROR, curl_multi_timeout, (CURLM * multi, long *milliseconds), (multi, milliseconds)) \
    F(const char *, "libcurl is missing", curl_multi_strerror, (CURLMcode code), (code)) \
    F(CURLMcode, CURLM_INTERNAL_ERROR, curl_multi_wakeup, (CURLM * multi), (multi)) \
    F(struct curl_slist *, NULL, curl_slist_append, (struct curl_slist * list, const char *text), (list, text)) \
    F(void, , curl_slist_free_all, (struct curl_slist * list), (list))

/// The functions of the library. All are NULL until the library is loaded.
static struct {
#define FIELD(result, missing, name, parameters, arguments) result(*name) parameters;
    FUNCTIONS(FIELD)
#undef FIELD
    CURLcode (*curl_global_init)(long flags);
    CURLcode (*curl_easy_setopt)(CURL *easy, CURLoption option, ...);
    CURLcode (*curl_easy_getinfo)(CURL *easy, CURLINFO info, ...);
    CURLMcode (*curl_multi_setopt)(CURLM *multi, CURLMoption option, ...);
} curl;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int is_loaded;

static void load(void) {
    void *library = dlopen("libcurl.so.4", RTLD_LAZY | RTLD_LOCAL);
    if (!library) return;
    int missing = 0;
#define FIND(name) missing |= !(*(void **)&curl.name = dlsym(library, #name));
#define FIND_EACH(result, missing, name, parameters, arguments) FIND(name)
    FUNCTIONS(FIND_EACH)
    FIND(curl_global_init)
    FIND(curl_easy_setopt)
    FIND(curl_easy_getinfo)
    FIND(curl_multi_setopt)
    is_loaded = !missing;
}

__attribute__((visibility("hidden"))) CURLcode curl_global_init(long flags) {
    pthread_once(&once, load);
    return is_loaded ? curl.curl_global_init(flags) : CURLE_FAILED_INIT;
}

// These functions are hidden, so that other libraries that call libcurl's functions use libcurl itself.
#define DEFINE(result, missing, name, parameters, arguments) \
    __attribute__((visibility("hidden"))) result name parameters { \
        if (!curl.name) return missing; \
        return curl.name arguments; \
    }
FUNCTIONS(DEFINE)
#undef DEFINE

CURLcode ccurl_set_long(CURL *easy, CURLoption option, long value) { return curl.curl_easy_setopt(easy, option, value); }

CURLcode ccurl_set_string(CURL *easy, CURLoption option, const char *value) {
    return curl.curl_easy_setopt(easy, option, value);
}

CURLcode ccurl_set_pointer(CURL *easy, CURLoption option, void *value) {
    return curl.curl_easy_setopt(easy, option, value);
}

CURLcode ccurl_set_list(CURL *easy, CURLoption option, struct curl_slist *value) {
    return curl.curl_easy_setopt(easy, option, value);
}

CURLcode ccurl_set_data_function(CURL *easy, CURLoption option, curl_write_callback value) {
    return curl.curl_easy_setopt(easy, option, value);
}

CURLcode ccurl_set_open_socket_function(CURL *easy, curl_opensocket_callback value) {
    return curl.curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, value);
}

CURLcode ccurl_set_resolver_start_function(CURL *easy, curl_resolver_start_callback value) {
    return curl.curl_easy_setopt(easy, CURLOPT_RESOLVER_START_FUNCTION, value);
}

CURLcode ccurl_set_prereq_function(CURL *easy, curl_prereq_callback value) {
    return curl.curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, value);
}

CURLcode ccurl_get_long(CURL *easy, CURLINFO info, long *value) { return curl.curl_easy_getinfo(easy, info, value); }

CURLcode ccurl_get_pointer(CURL *easy, CURLINFO info, void **value) {
    return curl.curl_easy_getinfo(easy, info, value);
}

CURLcode ccurl_get_socket(CURL *easy, curl_socket_t *value) {
    return curl.curl_easy_getinfo(easy, CURLINFO_ACTIVESOCKET, value);
}

CURLMcode ccurl_multi_set_long(CURLM *multi, CURLMoption option, long value) {
    return curl.curl_multi_setopt(multi, option, value);
}

CURLMcode ccurl_multi_set_socket_function(CURLM *multi, void *context, curl_socket_callback value) {
    curl.curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, context);
    return curl.curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, value);
}
