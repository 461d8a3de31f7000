#define _GNU_SOURCE
#include "include/FailingCalls.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Higher descriptors are never counted: programs under test have far fewer. */
enum { descriptor_limit = 65536 };

/* The path of each opened descriptor, relative to the directory; NULL for files elsewhere. */
static _Atomic(char *) opened_as[descriptor_limit];

static char directory[PATH_MAX];
static size_t directory_length;
static const char *plan_path;
static int log_descriptor = -1;

/* Guards the plan and its count, and keeps the log in the order of the counts. */
static pthread_mutex_t plan_lock = PTHREAD_MUTEX_INITIALIZER;
static char plan_text[512];
static unsigned long plan_count;

enum outcome {
  outcome_pass, outcome_fail, outcome_short, outcome_torn, outcome_held, outcome_slow
};

struct decision {
  enum outcome outcome;
  int number;
  unsigned long position;
};

/* The C library's function that a function of this library replaces. */
#define NEXT(name) ((__typeof__(&name))next_symbol(#name))

static void *next_symbol(const char *name) {
  void *symbol = dlsym(RTLD_NEXT, name);
  if (symbol == NULL) abort();
  return symbol;
}

__attribute__((constructor)) static void set_up(void) {
  const char *wanted = getenv("FAILING_CALLS_DIRECTORY");
  if (wanted == NULL || wanted[0] != '/' || strlen(wanted) >= sizeof directory) return;
  const char *log_path = getenv("FAILING_CALLS_LOG");
  if (log_path != NULL) {
    log_descriptor = (int)syscall(
        SYS_openat, AT_FDCWD, log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  }
  plan_path = getenv("FAILING_CALLS_PLAN");
  strcpy(directory, wanted);
  directory_length = strlen(directory);
}

/* The path below the directory, "." for itself, or NULL. */
static const char *relative(const char *path) {
  if (directory_length == 0 || strncmp(path, directory, directory_length) != 0) return NULL;
  const char *rest = path + directory_length;
  if (*rest == '\0') return ".";
  if (*rest != '/') return NULL;
  while (*rest == '/') rest++;
  return *rest == '\0' ? "." : rest;
}

/* The path of an open descriptor below the directory, or NULL. */
static const char *name_of(int descriptor) {
  if (descriptor < 0 || descriptor >= descriptor_limit) return NULL;
  return atomic_load_explicit(&opened_as[descriptor], memory_order_acquire);
}

/* Writes the path of a name below the directory to `buffer`; false if it is elsewhere. */
static bool locate(int parent, const char *name, char *buffer, size_t capacity) {
  if (directory_length == 0 || name == NULL) return false;
  if (name[0] == '/') {
    const char *path = relative(name);
    return path != NULL && snprintf(buffer, capacity, "%s", path) < (int)capacity;
  }
  if (parent == AT_FDCWD) {
    char current[PATH_MAX];
    char whole[2 * PATH_MAX];
    if (syscall(SYS_getcwd, current, sizeof current) < 0) return false;
    if (strcmp(name, ".") == 0) {
      snprintf(whole, sizeof whole, "%s", current);
    } else {
      snprintf(whole, sizeof whole, "%s/%s", current, name);
    }
    const char *path = relative(whole);
    return path != NULL && snprintf(buffer, capacity, "%s", path) < (int)capacity;
  }
  const char *base = name_of(parent);
  if (base == NULL) return false;
  if (strcmp(name, ".") == 0) return snprintf(buffer, capacity, "%s", base) < (int)capacity;
  if (strcmp(base, ".") == 0) return snprintf(buffer, capacity, "%s", name) < (int)capacity;
  return snprintf(buffer, capacity, "%s/%s", base, name) < (int)capacity;
}

static void remember(int descriptor, const char *path) {
  if (descriptor < 0 || descriptor >= descriptor_limit) return;
  char *copy = path == NULL ? NULL : strdup(path);
  /* The old name is not freed: another thread may be about to log it. */
  atomic_store_explicit(&opened_as[descriptor], copy, memory_order_release);
}

static void read_plan(char *text, size_t capacity) {
  text[0] = '\0';
  if (plan_path == NULL) return;
  int descriptor = (int)syscall(SYS_openat, AT_FDCWD, plan_path, O_RDONLY | O_CLOEXEC, 0);
  if (descriptor < 0) return;
  ssize_t count = syscall(SYS_read, descriptor, text, capacity - 1);
  syscall(SYS_close, descriptor);
  text[count < 0 ? 0 : count] = '\0';
}

/* Whether the list "a,b,c" names the call. */
static bool names_call(const char *list, const char *call) {
  if (strcmp(list, "all") == 0) return true;
  size_t length = strlen(call);
  for (const char *found = strstr(list, call); found != NULL; found = strstr(found + 1, call)) {
    bool begins = found == list || found[-1] == ',';
    if (begins && (found[length] == ',' || found[length] == '\0')) return true;
  }
  return false;
}

/* Counts a call on `path` and returns its planned effect. */
static struct decision decide(const char *call, const char *path) {
  struct decision decision = {outcome_pass, 0, 0};
  int saved = errno;
  char text[sizeof plan_text];
  pthread_mutex_lock(&plan_lock);
  read_plan(text, sizeof text);
  if (strcmp(text, plan_text) != 0) {
    strcpy(plan_text, text);
    plan_count = 0;
  }
  char calls[256];
  char names[128];
  char effect[16];
  unsigned long first = 0;
  unsigned long count = 0;
  int number = 0;
  if (sscanf(text, "%255s %127s %lu %lu %d %15s", calls, names, &first, &count, &number, effect)
      == 6) {
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    bool fits = strcmp(names, "*") == 0 || strncmp(name, names, strlen(names)) == 0;
    if (fits && names_call(calls, call)) {
      decision.position = ++plan_count;
      if (decision.position >= first && (count == 0 || decision.position - first < count)) {
        decision.number = number;
        decision.outcome = strcmp(effect, "short") == 0  ? outcome_short
                           : strcmp(effect, "torn") == 0 ? outcome_torn
                           : strcmp(effect, "held") == 0 ? outcome_held
                           : strcmp(effect, "slow") == 0 ? outcome_slow
                                                         : outcome_fail;
      }
    }
  }
  pthread_mutex_unlock(&plan_lock);
  errno = saved;
  return decision;
}

static void note(
    struct decision decision, const char *call, const char *result, long offset, size_t count,
    const char *path) {
  if (log_descriptor < 0) return;
  int saved = errno;
  char line[PATH_MAX + 128];
  int length = snprintf(
      line, sizeof line, "%lu %s %s %ld %zu %s\n", decision.position, call, result, offset, count,
      path);
  if (length > 0 && length < (int)sizeof line) syscall(SYS_write, log_descriptor, line, length);
  errno = saved;
}

static void note_value(
    struct decision decision, const char *call, long value, long offset, size_t count,
    const char *path) {
  char result[16] = "ok";
  if (value < 0) snprintf(result, sizeof result, "%d", errno);
  note(decision, call, result, offset, count, path);
}

/* Waits until the plan holds no calls, at most 20 s; the call then passes. */
static struct decision hold(struct decision decision, const char *call, const char *path) {
  note(decision, call, "held", 0, 0, path);
  char text[sizeof plan_text];
  for (int round = 0; round < 2000; round++) {
    usleep(10000);
    read_plan(text, sizeof text);
    if (strstr(text, " held") == NULL) break;
  }
  decision.outcome = outcome_pass;
  return decision;
}

/* A call that transfers no bytes, which `action` executes. */
#define PLAIN_CALL(call, path, action)                                        \
  do {                                                                        \
    struct decision decision = decide(call, path);                            \
    if (decision.outcome == outcome_held) decision = hold(decision, call, path); \
    if (decision.outcome == outcome_slow) {                                   \
      usleep((useconds_t)decision.number * 1000);                             \
      decision.outcome = outcome_pass;                                        \
    }                                                                         \
    long value = -1;                                                          \
    if (decision.outcome == outcome_pass || decision.outcome == outcome_torn) \
      value = (action);                                                       \
    if (decision.outcome != outcome_pass) {                                   \
      value = -1;                                                             \
      errno = decision.number;                                                \
    }                                                                         \
    note_value(decision, call, value, 0, 0, path);                            \
    return (int)value;                                                        \
  } while (0)

/* MARK: Opening */

static int open_counted(const char *path, int parent, const char *name, int flags, mode_t mode) {
  struct decision decision = decide("openat", path);
  if (decision.outcome != outcome_pass) {
    errno = decision.number;
    note_value(decision, "openat", -1, 0, 0, path);
    return -1;
  }
  int descriptor = NEXT(openat)(parent, name, flags, mode);
  note_value(decision, "openat", descriptor, 0, 0, path);
  if (descriptor >= 0) remember(descriptor, path);
  return descriptor;
}

static mode_t mode_argument(int flags, va_list arguments) {
  return flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, mode_t) : 0;
}

int openat(int parent, const char *name, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  mode_t mode = mode_argument(flags, arguments);
  va_end(arguments);
  char path[PATH_MAX];
  if (locate(parent, name, path, sizeof path)) {
    return open_counted(path, parent, name, flags, mode);
  }
  int descriptor = NEXT(openat)(parent, name, flags, mode);
  remember(descriptor, NULL);
  return descriptor;
}

int open(const char *name, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  mode_t mode = mode_argument(flags, arguments);
  va_end(arguments);
  char path[PATH_MAX];
  if (locate(AT_FDCWD, name, path, sizeof path)) {
    return open_counted(path, AT_FDCWD, name, flags, mode);
  }
  int descriptor = NEXT(open)(name, flags, mode);
  remember(descriptor, NULL);
  return descriptor;
}

int close(int descriptor) {
  remember(descriptor, NULL);
  return NEXT(close)(descriptor);
}

/* Closes its descriptor without close(), so the number is free for a pipe or a socket. */
int closedir(DIR *stream) {
  remember(dirfd(stream), NULL);
  return NEXT(closedir)(stream);
}

/* MARK: Transfers */

static ssize_t write_counted(
    const char *call, const char *path, int descriptor, const void *bytes, size_t count,
    off_t offset, bool has_offset) {
  struct decision decision = decide(call, path);
  size_t wanted = count;
  bool is_cut = decision.outcome == outcome_short || decision.outcome == outcome_torn;
  /* A short write of one byte would write none, which no regular file does. */
  bool is_failed = decision.outcome == outcome_fail || (is_cut && count < 2);
  if (is_failed) {
    errno = decision.number;
    note_value(decision, call, -1, offset, count, path);
    return -1;
  }
  if (is_cut) wanted = count / 2;
  ssize_t done = has_offset ? NEXT(pwrite)(descriptor, bytes, wanted, offset)
                            : NEXT(write)(descriptor, bytes, wanted);
  if (decision.outcome == outcome_torn) {
    errno = decision.number;
    done = -1;
  }
  if (decision.outcome == outcome_short && done >= 0) {
    note(decision, call, "short", offset, count, path);
  } else {
    note_value(decision, call, done, offset, count, path);
  }
  return done;
}

ssize_t pwrite(int descriptor, const void *bytes, size_t count, off_t offset) {
  const char *path = name_of(descriptor);
  if (path == NULL) return NEXT(pwrite)(descriptor, bytes, count, offset);
  return write_counted("pwrite", path, descriptor, bytes, count, offset, true);
}

ssize_t write(int descriptor, const void *bytes, size_t count) {
  const char *path = name_of(descriptor);
  if (path == NULL) return NEXT(write)(descriptor, bytes, count);
  return write_counted("write", path, descriptor, bytes, count, 0, false);
}

ssize_t pread(int descriptor, void *bytes, size_t count, off_t offset) {
  const char *path = name_of(descriptor);
  if (path == NULL) return NEXT(pread)(descriptor, bytes, count, offset);
  struct decision decision = decide("pread", path);
  ssize_t done = -1;
  if (decision.outcome == outcome_pass) {
    done = NEXT(pread)(descriptor, bytes, count, offset);
  } else if (decision.outcome == outcome_short && count > 1) {
    done = NEXT(pread)(descriptor, bytes, count / 2, offset);
  } else {
    errno = decision.number;
  }
  note_value(decision, "pread", done, offset, count, path);
  return done;
}

ssize_t splice(
    int input, off64_t *input_offset, int output, off64_t *output_offset, size_t count,
    unsigned flags) {
  const char *path = name_of(input);
  if (path == NULL) {
    return NEXT(splice)(input, input_offset, output, output_offset, count, flags);
  }
  struct decision decision = decide("splice", path);
  long offset = input_offset == NULL ? 0 : (long)*input_offset;
  ssize_t done = -1;
  if (decision.outcome == outcome_pass) {
    done = NEXT(splice)(input, input_offset, output, output_offset, count, flags);
  } else {
    errno = decision.number;
  }
  note_value(decision, "splice", done, offset, count, path);
  return done;
}

/* MARK: Files */

int ftruncate(int descriptor, off_t length) {
  const char *path = name_of(descriptor);
  if (path == NULL) return NEXT(ftruncate)(descriptor, length);
  PLAIN_CALL("ftruncate", path, NEXT(ftruncate)(descriptor, length));
}

int fsync(int descriptor) {
  const char *path = name_of(descriptor);
  if (path == NULL) return NEXT(fsync)(descriptor);
  PLAIN_CALL("fsync", path, NEXT(fsync)(descriptor));
}

int fdatasync(int descriptor) {
  const char *path = name_of(descriptor);
  if (path == NULL) return NEXT(fdatasync)(descriptor);
  PLAIN_CALL("fdatasync", path, NEXT(fdatasync)(descriptor));
}

int fchmod(int descriptor, mode_t mode) {
  const char *path = name_of(descriptor);
  if (path == NULL) return NEXT(fchmod)(descriptor, mode);
  PLAIN_CALL("fchmod", path, NEXT(fchmod)(descriptor, mode));
}

int futimens(int descriptor, const struct timespec times[2]) {
  const char *path = name_of(descriptor);
  if (path == NULL) return NEXT(futimens)(descriptor, times);
  PLAIN_CALL("futimens", path, NEXT(futimens)(descriptor, times));
}

int flock(int descriptor, int operation) {
  const char *path = name_of(descriptor);
  if (path == NULL) return NEXT(flock)(descriptor, operation);
  PLAIN_CALL("flock", path, NEXT(flock)(descriptor, operation));
}

int fstat(int descriptor, struct stat *status) {
  const char *path = name_of(descriptor);
  if (path == NULL) return NEXT(fstat)(descriptor, status);
  PLAIN_CALL("fstat", path, NEXT(fstat)(descriptor, status));
}

/* MARK: Names */

int mkdirat(int parent, const char *name, mode_t mode) {
  char path[PATH_MAX];
  if (!locate(parent, name, path, sizeof path)) return NEXT(mkdirat)(parent, name, mode);
  PLAIN_CALL("mkdirat", path, NEXT(mkdirat)(parent, name, mode));
}

int renameat(int old_parent, const char *old_name, int new_parent, const char *new_name) {
  char path[PATH_MAX];
  if (!locate(new_parent, new_name, path, sizeof path)) {
    return NEXT(renameat)(old_parent, old_name, new_parent, new_name);
  }
  PLAIN_CALL("renameat", path, NEXT(renameat)(old_parent, old_name, new_parent, new_name));
}

int renameat2(
    int old_parent, const char *old_name, int new_parent, const char *new_name, unsigned flags) {
  char path[PATH_MAX];
  if (!locate(new_parent, new_name, path, sizeof path)) {
    return NEXT(renameat2)(old_parent, old_name, new_parent, new_name, flags);
  }
  PLAIN_CALL("renameat", path, NEXT(renameat2)(old_parent, old_name, new_parent, new_name, flags));
}

int unlinkat(int parent, const char *name, int flags) {
  char path[PATH_MAX];
  if (!locate(parent, name, path, sizeof path)) return NEXT(unlinkat)(parent, name, flags);
  PLAIN_CALL("unlinkat", path, NEXT(unlinkat)(parent, name, flags));
}

/* MARK: The names of large files */

/* On 64-bit systems these are the same functions under a second name. */
#define SAME_AS(name) __attribute__((alias(#name)))

int openat64(int parent, const char *name, int flags, ...) SAME_AS(openat);
int open64(const char *name, int flags, ...) SAME_AS(open);
ssize_t pwrite64(int descriptor, const void *bytes, size_t count, off64_t offset) SAME_AS(pwrite);
ssize_t pread64(int descriptor, void *bytes, size_t count, off64_t offset) SAME_AS(pread);
int ftruncate64(int descriptor, off64_t length) SAME_AS(ftruncate);
