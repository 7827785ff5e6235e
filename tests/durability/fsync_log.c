/* Loaded into a server by LD_PRELOAD: writes down how much of which file is on disk.
 *
 * After each fsync or fdatasync that succeeded, one line goes to the file that FSYNC_LOG names: the
 * inode, how long the file was when the call began, and when that was (CLOCK_MONOTONIC, in
 * nanoseconds). What was written while the call ran may be on disk too; it does not count. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int log_fd = -1;

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("FSYNC_LOG");
    if (path != NULL)
        log_fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static int synced(const char *name, int fd)
{
    struct stat before;
    struct timespec now;
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    /* The time first: whatever was written before it is within the length. */
    clock_gettime(CLOCK_MONOTONIC, &now);
    int known = fstat(fd, &before);
    int answer = real(fd);
    if (answer == 0 && known == 0 && log_fd >= 0) {
        char line[128];
        int length = snprintf(line, sizeof line, "%llu %lld %lld\n",
                              (unsigned long long)before.st_ino, (long long)before.st_size,
                              (long long)now.tv_sec * 1000000000LL + now.tv_nsec);
        if (write(log_fd, line, (size_t)length) != length)
            _exit(99); /* a log with a hole would prove nothing */
    }
    return answer;
}

int fsync(int fd) { return synced("fsync", fd); }
int fdatasync(int fd) { return synced("fdatasync", fd); }
