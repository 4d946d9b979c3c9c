/* Functions of libraries that the process has loaded already, by their names. */

#ifndef CYGRAD_LOADED_LIBRARY_H
#define CYGRAD_LOADED_LIBRARY_H

#include <stddef.h>

#ifdef _WIN32

#include "platform/lock.h"              /* windows.h, with the settings that it needs */

typedef HMODULE cygrad_library;

/* `file` is encoded in UTF-8, as Python encodes names of files on Windows. */
static cygrad_library cygrad_loaded(const char *file)
{
    wchar_t wide[MAX_PATH];
    return MultiByteToWideChar(CP_UTF8, 0, file, -1, wide, MAX_PATH) ? GetModuleHandleW(wide) : NULL;
}

/* A function of the library or of those it links to, or NULL. Windows searches one library at a time, so we read in the
   library's table of imports which others it has. */
static void *cygrad_function_of(cygrad_library library, const char *name)
{
    const char *start = (const char *)library;
    const IMAGE_NT_HEADERS *head = (const IMAGE_NT_HEADERS *)(start + ((const IMAGE_DOS_HEADER *)start)->e_lfanew);
    const DWORD table = head->OptionalHeader.DataDirectory[IMAGE_DIRECTORY_ENTRY_IMPORT].VirtualAddress;
    FARPROC found = GetProcAddress(library, name);
    if (!table) return (void *)found;
    for (const IMAGE_IMPORT_DESCRIPTOR *other = (const void *)(start + table); !found && other->Name; other++) {
        const HMODULE loaded = GetModuleHandleA(start + other->Name);
        if (loaded) found = GetProcAddress(loaded, name);
    }
    return (void *)found;
}

#else

#include <dlfcn.h>

typedef void *cygrad_library;

static cygrad_library cygrad_loaded(const char *file) { return dlopen(file, RTLD_LAZY | RTLD_NOLOAD); }

/* A function of the library or of those it links to, or NULL. */
static void *cygrad_function_of(cygrad_library library, const char *name) { return dlsym(library, name); }

#endif
#endif
