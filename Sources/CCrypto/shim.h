#pragma once
// OpenSSL 3 prefers EVP_DigestInit to SHA256_Init. For a text of 100 bytes EVP takes four times as long, and the first
// call reads OpenSSL's configuration, which costs a process a millisecond.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/crypto.h>
#include <openssl/hmac.h>
#include <openssl/md5.h>
#include <openssl/sha.h>
