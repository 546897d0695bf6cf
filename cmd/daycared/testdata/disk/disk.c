/* The disk under SQLite, for tests: while the file that $BAD_DISK names begins with "write N" or "sync N", these calls of
 * the C library fail with the error of that number. Loaded before the C library (LD_PRELOAD); what Go itself writes does
 * not go through it. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int bad(const char *call) {
	const char *path = getenv("BAD_DISK");
	char text[32] = {0};
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (fd < 0)
		return 0;
	ssize_t n = read(fd, text, sizeof text - 1);
	close(fd);
	return n > 0 && strncmp(text, call, strlen(call)) == 0 ? atoi(text + strlen(call)) : 0;
}

static int sync_of(int fd, long call) {
	int failure = bad("sync ");
	if (failure) {
		errno = failure;
		return -1;
	}
	return syscall(call, fd);
}

int fsync(int fd) { return sync_of(fd, SYS_fsync); }

int fdatasync(int fd) { return sync_of(fd, SYS_fdatasync); }

ssize_t pwrite64(int fd, const void *from, size_t n, off64_t at) {
	int failure = bad("write ");
	if (failure) {
		errno = failure;
		return -1;
	}
	return syscall(SYS_pwrite64, fd, from, n, at);
}

ssize_t pwrite(int fd, const void *from, size_t n, off_t at) { return pwrite64(fd, from, n, at); }
