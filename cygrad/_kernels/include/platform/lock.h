/* A lock to be held for a few instructions. */

#ifndef CYGRAD_LOCK_H
#define CYGRAD_LOCK_H

#ifdef _WIN32
#define WIN32_LEAN_AND_MEAN
#define NOMINMAX
#include <windows.h>
#include <malloc.h>
typedef SRWLOCK cygrad_lock;
#define CYGRAD_LOCK_INIT SRWLOCK_INIT
#define cygrad_acquire(lock) AcquireSRWLockExclusive(lock)
#define cygrad_release_lock(lock) ReleaseSRWLockExclusive(lock)
#else
#include <pthread.h>
#define CYGRAD_FORKS                    /* a thread of another library may hold a lock during fork */
typedef pthread_mutex_t cygrad_lock;
#define CYGRAD_LOCK_INIT PTHREAD_MUTEX_INITIALIZER
#define cygrad_acquire(lock) pthread_mutex_lock(lock)
#define cygrad_release_lock(lock) pthread_mutex_unlock(lock)
#endif

/* Initializes a lock that is not a static variable. */
static inline void cygrad_make_lock(cygrad_lock *lock)
{
    const cygrad_lock made = CYGRAD_LOCK_INIT;
    *lock = made;
}

#endif
