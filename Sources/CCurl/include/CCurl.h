#pragma once
// libcurl by its own header, and loaded on the first fetch: linked, it and its thirty libraries would cost every command
// milliseconds, those that fetch nothing included. CCurl.c defines the functions of libcurl that Pipeline calls, each of which
// calls the one of its name in the library. `curl_global_init` loads it and comes before all others; it gives
// CURLE_FAILED_INIT where the library is missing (Debian: libcurl4) or lacks a function.
//
// The checking macros of curl.h only see through constant options; the wrappers below check by their types.
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

// curl_easy_setopt, curl_easy_getinfo and curl_multi_setopt are variadic, which Swift cannot call. One wrapper for each type
// of argument; CURLOPTTYPE in curl.h says which type an option takes.

CURLcode ccurl_set_long(CURL *easy, CURLoption option, long value);
CURLcode ccurl_set_string(CURL *easy, CURLoption option, const char *value);
CURLcode ccurl_set_pointer(CURL *easy, CURLoption option, void *value);
CURLcode ccurl_set_list(CURL *easy, CURLoption option, struct curl_slist *value);
/// For CURLOPT_WRITEFUNCTION and CURLOPT_HEADERFUNCTION, whose functions have one type.
CURLcode ccurl_set_data_function(CURL *easy, CURLoption option, curl_write_callback value);
CURLcode ccurl_set_open_socket_function(CURL *easy, curl_opensocket_callback value);
CURLcode ccurl_set_prereq_function(CURL *easy, curl_prereq_callback value);
CURLcode ccurl_get_long(CURL *easy, CURLINFO info, long *value);
CURLcode ccurl_get_pointer(CURL *easy, CURLINFO info, void **value);
CURLMcode ccurl_multi_set_long(CURLM *multi, CURLMoption option, long value);
/// CURLMOPT_SOCKETFUNCTION and what it is called with.
CURLMcode ccurl_multi_set_socket_function(CURLM *multi, void *context, curl_socket_callback value);

/// A macro of other macros, which Swift does not import.
enum { ccurl_global_default = CURL_GLOBAL_DEFAULT };

/// The result of a CURLMSG_DONE message lives in a union.
static inline CURLcode ccurl_message_result(const CURLMsg *message) { return message->data.result; }
