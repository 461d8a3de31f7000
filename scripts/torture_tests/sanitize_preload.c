// Tells ThreadSanitizer about synchronization that it cannot see. scripts/torture sanitize builds
// this library and loads it between a program and the system's libraries (LD_PRELOAD).
//
// Swift's Mutex: the runtime's libraries are built without the sanitizer. It sees the inlined fast
// paths of Synchronization.Mutex, but not the slow ones, and reports accesses that they have
// ordered. Self, the address of the lock's word, is in the context register of Swift's calling
// convention.
//
// Cancelled threads: libfuse ends its threads by cancelling them in read(2). They never return to
// the sanitizer's own read, which has told the sanitizer to ignore the call's accesses. If a thread
// ends in that state, the sanitizer ends the process.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <unistd.h>

// The script also starts programs without the sanitizer, which do not have these symbols.
__attribute__((weak)) void __tsan_acquire(void *address);
__attribute__((weak)) void __tsan_release(void *address);
__attribute__((weak)) void AnnotateIgnoreReadsEnd(const char *file, int line);

#define LOCK_SLOW "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
#define UNLOCK_SLOW "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"

typedef __attribute__((swiftcall)) void lock_function(
    uint32_t thread, __attribute__((swift_context)) void *handle);
typedef __attribute__((swiftcall)) void unlock_function(
    __attribute__((swift_context)) void *handle);

static lock_function *real_lock;
static unlock_function *real_unlock;

__attribute__((constructor)) static void find_functions(void) {
  real_lock = (lock_function *)dlsym(RTLD_NEXT, LOCK_SLOW);
  real_unlock = (unlock_function *)dlsym(RTLD_NEXT, UNLOCK_SLOW);
}

__attribute__((swiftcall)) void lock_slow(
    uint32_t thread, __attribute__((swift_context)) void *handle) __asm__(LOCK_SLOW);
__attribute__((swiftcall)) void lock_slow(
    uint32_t thread, __attribute__((swift_context)) void *handle) {
  real_lock(thread, handle);
  if (__tsan_acquire) __tsan_acquire(handle);
}

__attribute__((swiftcall)) void unlock_slow(
    __attribute__((swift_context)) void *handle) __asm__(UNLOCK_SLOW);
__attribute__((swiftcall)) void unlock_slow(
    __attribute__((swift_context)) void *handle) {
  if (__tsan_release) __tsan_release(handle);
  real_unlock(handle);
}

// The C library's function, under a name that no library intercepts.
ssize_t __read(int descriptor, void *buffer, size_t byte_count);

static void end_ignoring(void *unused) {
  (void)unused;
  if (AnnotateIgnoreReadsEnd) AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
}

ssize_t read(int descriptor, void *buffer, size_t byte_count) {
  ssize_t result;
  pthread_cleanup_push(end_ignoring, NULL);
  result = __read(descriptor, buffer, byte_count);
  pthread_cleanup_pop(0);
  return result;
}
