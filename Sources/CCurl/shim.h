#pragma once
#include <curl/curl.h>

// `curl_easy_setopt`, `curl_multi_setopt` and `curl_easy_getinfo` are variadic (and type-checking
// macros), which Swift cannot import: one function for each type of argument.

static inline CURLcode httpfs_easy_set_long(CURL *easy, CURLoption option, long value) {
  return curl_easy_setopt(easy, option, value);
}
static inline CURLcode httpfs_easy_set_offset(CURL *easy, CURLoption option, curl_off_t value) {
  return curl_easy_setopt(easy, option, value);
}
static inline CURLcode httpfs_easy_set_string(CURL *easy, CURLoption option, const char *value) {
  return curl_easy_setopt(easy, option, value);
}
static inline CURLcode httpfs_easy_set_pointer(CURL *easy, CURLoption option, void *value) {
  return curl_easy_setopt(easy, option, value);
}

typedef size_t (*httpfs_data_callback)(char *bytes, size_t size, size_t count, void *context);

/// Both callbacks of a transfer: of the head's lines and of the body's pieces.
static inline CURLcode httpfs_easy_set_callbacks(
    CURL *easy, httpfs_data_callback header, httpfs_data_callback body, void *context) {
  CURLcode code = curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, header);
  if (code == CURLE_OK) code = curl_easy_setopt(easy, CURLOPT_HEADERDATA, context);
  if (code == CURLE_OK) code = curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, body);
  if (code == CURLE_OK) code = curl_easy_setopt(easy, CURLOPT_WRITEDATA, context);
  if (code == CURLE_OK) code = curl_easy_setopt(easy, CURLOPT_PRIVATE, context);
  return code;
}

typedef int (*httpfs_seek_callback)(void *context, curl_off_t offset, int origin);

/// The callbacks of a request's body: what brings its bytes and what begins them anew.
static inline CURLcode httpfs_easy_set_body_callbacks(
    CURL *easy, httpfs_data_callback read, httpfs_seek_callback seek, void *context) {
  CURLcode code = curl_easy_setopt(easy, CURLOPT_READFUNCTION, read);
  if (code == CURLE_OK) code = curl_easy_setopt(easy, CURLOPT_READDATA, context);
  if (code == CURLE_OK) code = curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, seek);
  if (code == CURLE_OK) code = curl_easy_setopt(easy, CURLOPT_SEEKDATA, context);
  return code;
}
static inline CURLSHcode httpfs_share_cookies(CURLSH *share) {
  return curl_share_setopt(share, CURLSHOPT_SHARE, CURL_LOCK_DATA_COOKIE);
}
static inline CURLMcode httpfs_multi_set_long(CURLM *multi, CURLMoption option, long value) {
  return curl_multi_setopt(multi, option, value);
}
static inline CURLcode httpfs_easy_get_long(CURL *easy, CURLINFO info, long *value) {
  return curl_easy_getinfo(easy, info, value);
}
static inline CURLcode httpfs_easy_get_offset(CURL *easy, CURLINFO info, curl_off_t *value) {
  return curl_easy_getinfo(easy, info, value);
}
static inline CURLcode httpfs_easy_get_pointer(CURL *easy, CURLINFO info, void **value) {
  return curl_easy_getinfo(easy, info, value);
}
/// What a finished transfer's message carries; its union cannot be read from Swift.
static inline CURLcode httpfs_message_result(const CURLMsg *message) { return message->data.result; }
