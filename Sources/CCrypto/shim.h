#pragma once
// OpenSSL 3 recommends EVP_DigestInit instead of SHA256_Init. For an input of 100 bytes, EVP takes four times as long,
// and its first call reads OpenSSL's configuration, which takes a millisecond per process.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/crypto.h>
#include <openssl/hmac.h>
#include <openssl/md5.h>
#include <openssl/sha.h>
