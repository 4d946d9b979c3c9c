/* A lock to be held for a few instructions.

   On macOS it is a mutex of POSIX, too: the system's smaller locks belong to a thread, and the process that a fork makes
   has another one, which may not release what its parent took before. */

#ifndef CYGRAD_LOCK_H
#define CYGRAD_LOCK_H

#ifdef _WIN32
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <windows.h>
#include <malloc.h>
typedef SRWLOCK cygrad_lock;
#define CYGRAD_LOCK_INIT SRWLOCK_INIT
#define cygrad_acquire(lock) AcquireSRWLockExclusive(lock)
#define cygrad_acquire_if_free(lock) TryAcquireSRWLockExclusive(lock)
#define cygrad_release_lock(lock) ReleaseSRWLockExclusive(lock)
#else
#include <pthread.h>
#define CYGRAD_FORKS                    /* a thread of another library may hold a lock during fork */
typedef pthread_mutex_t cygrad_lock;
#define CYGRAD_LOCK_INIT PTHREAD_MUTEX_INITIALIZER
#define cygrad_acquire(lock) pthread_mutex_lock(lock)
#define cygrad_acquire_if_free(lock) (pthread_mutex_trylock(lock) == 0)
#define cygrad_release_lock(lock) pthread_mutex_unlock(lock)
#endif

/* Initializes a lock that is not a static variable. */
static inline void cygrad_make_lock(cygrad_lock *lock)
{
    const cygrad_lock made = CYGRAD_LOCK_INIT;
    *lock = made;
}

#endif
