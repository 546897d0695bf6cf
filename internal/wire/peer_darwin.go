package wire

import "golang.org/x/sys/unix"

// peerUID is the account at the other end of a unix socket when it connected (unix(4), LOCAL_PEERCRED). The process is unknown.
func peerUID(fd int) (uid, pid int, err error) {
	cred, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return 0, 0, err
	}
	return int(cred.Uid), 0, nil
}
