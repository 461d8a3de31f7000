// Tells ThreadSanitizer what Swift's Mutex does where two threads meet.
//
// The runtime's libraries are built without it: of Synchronization.Mutex it sees the fast paths, which
// are inlined, but not the slow ones, and reports what they have put in order. This library stands
// between a program and those two functions (LD_PRELOAD; scripts/sanitize builds it). Self, the
// address of the lock's word, comes in the context register of Swift's calling convention.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>

// In programs without the sanitizer, which are started too, these are not there.
__attribute__((weak)) void __tsan_acquire(void *address);
__attribute__((weak)) void __tsan_release(void *address);

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
