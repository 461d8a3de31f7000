#pragma once
#include <curl/curl.h>
#include <netinet/in.h>
#include <string.h>

// `curl_easy_setopt`, `curl_multi_setopt` and `curl_easy_getinfo` are variadic (and macros that
// check types), which Swift cannot import. So there is one function for each type of argument.

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

/// Sets both callbacks of a response: for lines of its head and for pieces of its body.
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

/// Sets the callbacks of a request's body: one reads its next bytes, one rewinds it.
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

/// Sets the callbacks of a connection: for each socket before it is opened, and for each request
/// before it is sent.
static inline CURLcode httpfs_easy_set_connection_callbacks(
    CURL *easy, httpfs_socket_callback open, httpfs_request_callback request, void *context) {
  CURLcode code = curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open);
  if (code == CURLE_OK) code = curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, context);
  if (code == CURLE_OK) code = curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, request);
  if (code == CURLE_OK) code = curl_easy_setopt(easy, CURLOPT_PREREQDATA, context);
  return code;
}
/// Copies the address that a socket will connect to, without the header of its address family.
/// Returns the number of bytes; 0 for a family without addresses.
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
/// The result in the message of a finished transfer. Swift cannot read the message's union.
static inline CURLcode httpfs_message_result(const CURLMsg *message) { return message->data.result; }
