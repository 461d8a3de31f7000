#pragma once
#include <curl/curl.h>
#include <netinet/in.h>
#include <string.h>

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
typedef curl_socket_t (*httpfs_socket_callback)(
    void *context, curlsocktype purpose, struct curl_sockaddr *address);
typedef int (*httpfs_request_callback)(
    void *context, char *address, char *local_address, int port, int local_port);

/// The callbacks of a transfer's connection: of each socket to be opened, and of a request that is
/// about to be sent.
static inline CURLcode httpfs_easy_set_connection_callbacks(
    CURL *easy, httpfs_socket_callback open, httpfs_request_callback request, void *context) {
  CURLcode code = curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open);
  if (code == CURLE_OK) code = curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, context);
  if (code == CURLE_OK) code = curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, request);
  if (code == CURLE_OK) code = curl_easy_setopt(easy, CURLOPT_PREREQDATA, context);
  return code;
}
/// Copies the address that a socket is to be connected to, which lies behind a header of the family's
/// own; the number of its bytes, 0 for a family without addresses.
static inline int httpfs_address_bytes(const struct curl_sockaddr *address, unsigned char out[16]) {
  if (address->family == AF_INET && address->addrlen >= sizeof(struct sockaddr_in)) {
    memcpy(out, &((const struct sockaddr_in *)(const void *)&address->addr)->sin_addr, 4);
    return 4;
  }
  if (address->family == AF_INET6 && address->addrlen >= sizeof(struct sockaddr_in6)) {
    memcpy(out, &((const struct sockaddr_in6 *)(const void *)&address->addr)->sin6_addr, 16);
    return 16;
  }
  return 0;
}
static inline CURLSHcode httpfs_share_cookies(CURLSH *share) {
  return curl_share_setopt(share, CURLSHOPT_SHARE, CURL_LOCK_DATA_COOKIE);
}
static inline CURLSHcode httpfs_share_sessions(CURLSH *share) {
  return curl_share_setopt(share, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION);
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
