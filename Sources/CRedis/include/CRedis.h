#pragma once
// hiredis' reply reader and command formatter. The library is loaded at first use, so programs without a fleet never
// load it. Its header is not used, for two reasons: builds do not depend on hiredis, and `redisReply` has different
// layouts in 0.14 (Debian 12) and 1.x (Debian 13). The functions below detect the layout of the loaded library.
#include <stdbool.h>
#include <stddef.h>

typedef struct credis_reader credis_reader;
typedef struct credis_reply credis_reply;

/// The values of REDIS_REPLY_… in hiredis' read.h.
enum {
    credis_string = 1,
    credis_array = 2,
    credis_integer = 3,
    credis_nil = 4,
    credis_status = 5,
    credis_error = 6,
};

/// Loads the library. Returns false if the library is missing (Debian: libhiredis0.14 or libhiredis1.1.0), lacks a
/// function, or has an unknown layout of replies. This function must return true before any other function here is
/// called.
bool credis_load(void);

/// Creates a reader. Returns NULL if out of memory.
credis_reader *credis_reader_create(void);
void credis_reader_free(credis_reader *reader);
/// Adds received bytes. Returns false if out of memory.
bool credis_reader_feed(credis_reader *reader, const void *bytes, size_t count);
/// Stores the next complete reply, or NULL if more bytes are needed. Returns false if the bytes are not valid replies.
bool credis_reader_next(credis_reader *reader, credis_reply **reply);
/// Returns the error in the bytes. The string is valid until the reader is freed.
const char *credis_reader_problem(const credis_reader *reader);

int credis_reply_type(const credis_reply *reply);
long long credis_reply_integer(const credis_reply *reply);
/// Returns the bytes of a string, status or error. The bytes belong to the reply.
const void *credis_reply_bytes(const credis_reply *reply, size_t *count);
size_t credis_reply_count(const credis_reply *reply);
/// Returns an element of an array. The element belongs to the reply.
const credis_reply *credis_reply_element(const credis_reply *reply, size_t index);
void credis_reply_free(credis_reply *reply);

/// Formats a command, which must be freed with `credis_command_free`. Returns the length of the command, or a negative
/// number if out of memory.
int credis_format(char **command, int count, const char **words, const size_t *lengths);
void credis_command_free(char *command);
