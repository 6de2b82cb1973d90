#include "CRedis.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

/// The first members of `redisReader`, which are the same in all versions.
struct credis_reader {
    int error;
    char text[128];
};

/// `redisReply` in hiredis up to 0.14.
struct old_reply {
    int type;
    long long integer;
    size_t length;
    char *bytes;
    size_t count;
    credis_reply **elements;
};

/// `redisReply` of hiredis 1.x.
struct new_reply {
    int type;
    long long integer;
    double number;
    size_t length;
    char *bytes;
    char number_type[4];
    size_t count;
    credis_reply **elements;
};

struct credis_reply {
    union {
        struct old_reply old;
        struct new_reply new;
    };
};

/// The functions of the library.
static struct {
    credis_reader *(*redisReaderCreate)(void);
    void (*redisReaderFree)(credis_reader *reader);
    int (*redisReaderFeed)(credis_reader *reader, const char *bytes, size_t count);
    int (*redisReaderGetReply)(credis_reader *reader, void **reply);
    void (*freeReplyObject)(void *reply);
    // The result is a long long since version 1.1, but an int is sufficient, because commands of 2 GB are never sent.
    int (*redisFormatCommandArgv)(char **target, int count, const char **words, const size_t *lengths);
    void (*redisFreeCommand)(char *command);
} hiredis;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool is_loaded;
static bool is_old;

/// Determines the layout of replies by parsing a sample reply. The smaller layout extends beyond all members that are
/// compared.
static bool find_layout(void) {
    static const char sample[] = "$3\r\nabc\r\n";
    credis_reader *reader = hiredis.redisReaderCreate();
    void *reply = NULL;
    bool is_known = false;
    if (reader && hiredis.redisReaderFeed(reader, sample, sizeof sample - 1) == 0 &&
        hiredis.redisReaderGetReply(reader, &reply) == 0 && reply) {
        const credis_reply *parsed = reply;
        is_old = parsed->old.length == 3;
        is_known = (is_old || parsed->new.length == 3) && parsed->old.type == credis_string &&
                   memcmp(is_old ? parsed->old.bytes : parsed->new.bytes, "abc", 3) == 0;
        hiredis.freeReplyObject(reply);
    }
    if (reader) hiredis.redisReaderFree(reader);
    return is_known;
}

static void load(void) {
    static const char *const names[] = {
        "libhiredis.so.1.1.0", "libhiredis.so.0.14", "libhiredis.so.1.3.0", "libhiredis.so.1.2.0",
        "libhiredis.so.1.0.0", "libhiredis.so.1",    "libhiredis.so",
    };
    void *library = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && !library; i++)
        library = dlopen(names[i], RTLD_LAZY | RTLD_LOCAL);
    if (!library) return;
    bool is_missing = false;
#define FIND(name) is_missing |= !(*(void **)&hiredis.name = dlsym(library, #name));
    FIND(redisReaderCreate)
    FIND(redisReaderFree)
    FIND(redisReaderFeed)
    FIND(redisReaderGetReply)
    FIND(freeReplyObject)
    FIND(redisFormatCommandArgv)
    FIND(redisFreeCommand)
    is_loaded = !is_missing && find_layout();
}

bool credis_load(void) {
    pthread_once(&once, load);
    return is_loaded;
}

credis_reader *credis_reader_create(void) { return hiredis.redisReaderCreate(); }

void credis_reader_free(credis_reader *reader) { hiredis.redisReaderFree(reader); }

bool credis_reader_feed(credis_reader *reader, const void *bytes, size_t count) {
    return hiredis.redisReaderFeed(reader, bytes, count) == 0;
}

bool credis_reader_next(credis_reader *reader, credis_reply **reply) {
    void *parsed = NULL;
    bool is_valid = hiredis.redisReaderGetReply(reader, &parsed) == 0;
    *reply = parsed;
    return is_valid;
}

const char *credis_reader_problem(const credis_reader *reader) { return reader->text; }

int credis_reply_type(const credis_reply *reply) { return reply->old.type; }

long long credis_reply_integer(const credis_reply *reply) { return reply->old.integer; }

const void *credis_reply_bytes(const credis_reply *reply, size_t *count) {
    *count = is_old ? reply->old.length : reply->new.length;
    return is_old ? reply->old.bytes : reply->new.bytes;
}

size_t credis_reply_count(const credis_reply *reply) { return is_old ? reply->old.count : reply->new.count; }

const credis_reply *credis_reply_element(const credis_reply *reply, size_t index) {
    return is_old ? reply->old.elements[index] : reply->new.elements[index];
}

void credis_reply_free(credis_reply *reply) { hiredis.freeReplyObject(reply); }

int credis_format(char **command, int count, const char **words, const size_t *lengths) {
    return hiredis.redisFormatCommandArgv(command, count, words, lengths);
}

void credis_command_free(char *command) { hiredis.redisFreeCommand(command); }
