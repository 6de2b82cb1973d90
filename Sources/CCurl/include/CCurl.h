#pragma once
// The interface of libcurl, from its own header. The library is loaded at the first fetch. If it were linked, libcurl
// and its thirty libraries would cost every command milliseconds, even commands that fetch nothing. CCurl.c defines the
// libcurl functions that Pipeline calls. Each of them calls the function of the same name in the library.
// `curl_global_init` loads the library and must be called first. It returns CURLE_FAILED_INIT if the library is missing
// (Debian: libcurl4) or lacks a function.
//
// The type-checking macros of curl.h require constant options. The types of the following wrappers are used instead.
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

// curl_easy_setopt, curl_easy_getinfo and curl_multi_setopt are variadic, so Swift cannot call them. There is one
// wrapper for each argument type. CURLOPTTYPE in curl.h defines the type of an option.

CURLcode ccurl_set_long(CURL *easy, CURLoption option, long value);
CURLcode ccurl_set_string(CURL *easy, CURLoption option, const char *value);
CURLcode ccurl_set_pointer(CURL *easy, CURLoption option, void *value);
CURLcode ccurl_set_list(CURL *easy, CURLoption option, struct curl_slist *value);
/// Sets CURLOPT_WRITEFUNCTION or CURLOPT_HEADERFUNCTION. Their callbacks have the same type.
CURLcode ccurl_set_data_function(CURL *easy, CURLoption option, curl_write_callback value);
CURLcode ccurl_set_open_socket_function(CURL *easy, curl_opensocket_callback value);
CURLcode ccurl_set_resolver_start_function(CURL *easy, curl_resolver_start_callback value);
CURLcode ccurl_set_prereq_function(CURL *easy, curl_prereq_callback value);
CURLcode ccurl_get_long(CURL *easy, CURLINFO info, long *value);
CURLcode ccurl_get_pointer(CURL *easy, CURLINFO info, void **value);
/// Gets CURLINFO_ACTIVESOCKET.
CURLcode ccurl_get_socket(CURL *easy, curl_socket_t *value);
CURLMcode ccurl_multi_set_long(CURLM *multi, CURLMoption option, long value);
/// Sets CURLMOPT_SOCKETFUNCTION and its context, CURLMOPT_SOCKETDATA.
CURLMcode ccurl_multi_set_socket_function(CURLM *multi, void *context, curl_socket_callback value);

/// Swift does not import CURL_GLOBAL_DEFAULT, because it expands to other macros.
enum { ccurl_global_default = CURL_GLOBAL_DEFAULT };

/// Returns the result of a CURLMSG_DONE message, which is stored in a union.
static inline CURLcode ccurl_message_result(const CURLMsg *message) { return message->data.result; }
