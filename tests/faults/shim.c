/* Loaded before libc (LD_PRELOAD): counts what a process does to the disk, and makes the n-th step go wrong.

   The process itself says when and how (fault_arm, through ctypes); until then nothing happens. Calls go to the
   kernel directly, so that nothing here depends on the order in which libraries are loaded. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { WRITE = 1, REMOVE = 2, READ = 4, NET = 8 };
enum { COUNT, KILL, FAIL_ONCE, FAIL_ON, SIGNAL, SIGNAL_TWICE, CLOCK_BACK, PAUSE };

static atomic_long counted, shift;
static long at = -1;
static int kind, argument, classes, pipe_out = -1, pipe_in = -1;

void fault_arm(long at_, int kind_, int argument_, int classes_, int out_, int in_) {
    atomic_store(&counted, 0);
    at = at_, kind = kind_, argument = argument_, pipe_out = out_, pipe_in = in_;
    classes = classes_;
}

long fault_count(void) { return atomic_load(&counted); }

static void die(void) {
    syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
    for (;;) syscall(SYS_getpid);
}

/* The error that this step must end with, or 0. */
static int before(int class) {
    if (!(classes & class)) return 0;
    long n = atomic_fetch_add(&counted, 1) + 1;
    if (kind == FAIL_ON && n >= at) return argument;
    if (kind == SIGNAL_TWICE && n == at + 1) syscall(SYS_kill, syscall(SYS_getpid), argument);
    if (n != at) return 0;
    char byte = 0;
    switch (kind) {
    case KILL: die(); break;
    case FAIL_ONCE: return argument;
    case SIGNAL: case SIGNAL_TWICE: syscall(SYS_kill, syscall(SYS_getpid), argument); break;
    case CLOCK_BACK: atomic_store(&shift, argument); break;
    case PAUSE: syscall(SYS_write, pipe_out, &byte, 1); syscall(SYS_read, pipe_in, &byte, 1); break;
    }
    return 0;
}

static int regular(int fd) {
    struct stat s;
    return !fstat(fd, &s) && S_ISREG(s.st_mode);
}

#define STEP(class, type, call)                                                                                    \
    int fail_ = before(class);                                                                                     \
    if (fail_) { errno = fail_; return -1; }                                                                       \
    return (type)(call)
#define ON_FILE(class, fd, type, call)                                                                             \
    if (!classes || !regular(fd)) return (type)(call);                                                             \
    STEP(class, type, call)

static int opened(int dir, const char *path, int flags, mode_t mode) {
    int writes = flags & (O_CREAT | O_TRUNC | O_WRONLY | O_RDWR);
    if (!classes || !writes || (path[0] == '/' && path[1] == 'd' && path[2] == 'e' && path[3] == 'v'))
        return syscall(SYS_openat, dir, path, flags, mode);
    STEP(WRITE, int, syscall(SYS_openat, dir, path, flags, mode));
}

#define MODE va_list rest; va_start(rest, flags); mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, int) : 0; va_end(rest)
int open(const char *path, int flags, ...) { MODE; return opened(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE; return opened(AT_FDCWD, path, flags | O_LARGEFILE, mode); }
int openat(int dir, const char *path, int flags, ...) { MODE; return opened(dir, path, flags, mode); }
int openat64(int dir, const char *path, int flags, ...) { MODE; return opened(dir, path, flags | O_LARGEFILE, mode); }

ssize_t write(int fd, const void *b, size_t n) { ON_FILE(WRITE, fd, ssize_t, syscall(SYS_write, fd, b, n)); }
ssize_t pwrite(int fd, const void *b, size_t n, off_t o) { ON_FILE(WRITE, fd, ssize_t, syscall(SYS_pwrite64, fd, b, n, o)); }
ssize_t pwrite64(int fd, const void *b, size_t n, off64_t o) { ON_FILE(WRITE, fd, ssize_t, syscall(SYS_pwrite64, fd, b, n, o)); }
ssize_t writev(int fd, const struct iovec *v, int n) { ON_FILE(WRITE, fd, ssize_t, syscall(SYS_writev, fd, v, n)); }
int ftruncate(int fd, off_t n) { ON_FILE(REMOVE, fd, int, syscall(SYS_ftruncate, fd, n)); }
int ftruncate64(int fd, off64_t n) { ON_FILE(REMOVE, fd, int, syscall(SYS_ftruncate, fd, n)); }
int fsync(int fd) { STEP(WRITE, int, syscall(SYS_fsync, fd)); }
int fdatasync(int fd) { STEP(WRITE, int, syscall(SYS_fdatasync, fd)); }
int rename(const char *a, const char *b) { STEP(WRITE, int, syscall(SYS_renameat2, AT_FDCWD, a, AT_FDCWD, b, 0)); }
int renameat(int x, const char *a, int y, const char *b) { STEP(WRITE, int, syscall(SYS_renameat2, x, a, y, b, 0)); }
int renameat2(int x, const char *a, int y, const char *b, unsigned f) { STEP(WRITE, int, syscall(SYS_renameat2, x, a, y, b, f)); }
int mkdir(const char *p, mode_t m) { STEP(WRITE, int, syscall(SYS_mkdirat, AT_FDCWD, p, m)); }
int mkdirat(int d, const char *p, mode_t m) { STEP(WRITE, int, syscall(SYS_mkdirat, d, p, m)); }
int chmod(const char *p, mode_t m) { STEP(WRITE, int, syscall(SYS_fchmodat, AT_FDCWD, p, m)); }
int fchmod(int fd, mode_t m) { STEP(WRITE, int, syscall(SYS_fchmod, fd, m)); }
int unlink(const char *p) { STEP(REMOVE, int, syscall(SYS_unlinkat, AT_FDCWD, p, 0)); }
int unlinkat(int d, const char *p, int f) { STEP(REMOVE, int, syscall(SYS_unlinkat, d, p, f)); }
int rmdir(const char *p) { STEP(REMOVE, int, syscall(SYS_unlinkat, AT_FDCWD, p, AT_REMOVEDIR)); }

ssize_t read(int fd, void *b, size_t n) { ON_FILE(READ, fd, ssize_t, syscall(SYS_read, fd, b, n)); }
ssize_t pread(int fd, void *b, size_t n, off_t o) { ON_FILE(READ, fd, ssize_t, syscall(SYS_pread64, fd, b, n, o)); }
ssize_t pread64(int fd, void *b, size_t n, off64_t o) { ON_FILE(READ, fd, ssize_t, syscall(SYS_pread64, fd, b, n, o)); }
/* A connection that breaks is gone for both directions. */
#define ON_SOCKET(fd, call)                                                                                        \
    int fail_ = before(NET);                                                                                       \
    if (fail_) { syscall(SYS_shutdown, fd, SHUT_RDWR); errno = fail_; return -1; }                                 \
    return (ssize_t)(call)
ssize_t send(int fd, const void *b, size_t n, int f) { ON_SOCKET(fd, syscall(SYS_sendto, fd, b, n, f, NULL, 0)); }
ssize_t recv(int fd, void *b, size_t n, int f) { ON_SOCKET(fd, syscall(SYS_recvfrom, fd, b, n, f, NULL, NULL)); }

int clock_gettime(clockid_t which, struct timespec *t) {
    int result = syscall(SYS_clock_gettime, which, t);
    if (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE) t->tv_sec -= atomic_load(&shift);
    return result;
}
time_t time(time_t *out) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    if (out) *out = t.tv_sec;
    return t.tv_sec;
}
int gettimeofday(struct timeval *restrict out, void *restrict zone) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    out->tv_sec = t.tv_sec, out->tv_usec = t.tv_nsec / 1000;
    return 0;
}

/* A signal after so much time of the processor, wherever the process is then: does not depend on other load. */
int fault_timer(long nanoseconds, int number) {
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = number};
    struct itimerspec when = {.it_value = {nanoseconds / 1000000000L, nanoseconds % 1000000000L}};
    timer_t timer;
    return timer_create(CLOCK_PROCESS_CPUTIME_ID, &event, &timer) || timer_settime(timer, 0, &when, NULL);
}
