#pragma once
// hiredis' reply reader and command formatter, loaded on first use: programs without a fleet never load it. Its header is
// not used: no build then depends on hiredis, and its `redisReply` is laid out differently in 0.14 (Debian 12) and 1.x
// (Debian 13). The functions below find out which layout the loaded library has.
#include <stdbool.h>
#include <stddef.h>

typedef struct credis_reader credis_reader;
typedef struct credis_reply credis_reply;

/// Values of REDIS_REPLY_… in hiredis' read.h.
enum {
    credis_string = 1,
    credis_array = 2,
    credis_integer = 3,
    credis_nil = 4,
    credis_status = 5,
    credis_error = 6,
};

/// Loads the library; false if it is missing (Debian: libhiredis0.14 or libhiredis1.1.0), lacks a function or lays out
/// replies in an unknown way. Must be called, and return true, before any other function here.
bool credis_load(void);

/// A new reader; NULL if memory is short.
credis_reader *credis_reader_create(void);
void credis_reader_free(credis_reader *reader);
/// Adds bytes that have arrived; false if memory is short.
bool credis_reader_feed(credis_reader *reader, const void *bytes, size_t count);
/// Stores the next complete reply, or NULL if more bytes are needed; false if the bytes are no valid replies.
bool credis_reader_next(credis_reader *reader, credis_reply **reply);
/// What is wrong with the bytes. Valid until the reader is freed.
const char *credis_reader_problem(const credis_reader *reader);

int credis_reply_type(const credis_reply *reply);
long long credis_reply_integer(const credis_reply *reply);
/// The bytes of a string, a status or an error. They belong to the reply.
const void *credis_reply_bytes(const credis_reply *reply, size_t *count);
size_t credis_reply_count(const credis_reply *reply);
/// An element of an array. It belongs to the reply.
const credis_reply *credis_reply_element(const credis_reply *reply, size_t index);
void credis_reply_free(credis_reply *reply);

/// Formats a command, to be freed with `credis_command_free`; returns its length, or a negative number if memory is short.
int credis_format(char **command, int count, const char **words, const size_t *lengths);
void credis_command_free(char *command);
